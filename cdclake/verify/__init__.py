"""The comparison of `verify` without I/O: SQL texts for both sides, and values by type."""
