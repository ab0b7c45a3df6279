"""Web logs in a local lake: their tables and streams, and counts of their requests."""
