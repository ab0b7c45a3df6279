"""Web logs and put tables in a local lake: their tables and streams, and counts of records."""
