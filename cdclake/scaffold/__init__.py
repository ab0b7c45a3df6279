"""The project that `cdclake new` writes: template files, and what replaces their placeholders."""
