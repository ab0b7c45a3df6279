"""Reader of the lake with DuckDB, an engine that never writes the lake."""
