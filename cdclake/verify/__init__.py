"""What `verify` compares, without I/O: SQL texts for both sides, and values by type."""
