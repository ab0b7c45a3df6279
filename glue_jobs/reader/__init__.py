"""The lake read by DuckDB, an engine that never writes it."""
