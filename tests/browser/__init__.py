"""The page of `cdclake ui` in a real browser."""
