"""Web logs in a local lake: their tables and streams, and how far their requests are."""
