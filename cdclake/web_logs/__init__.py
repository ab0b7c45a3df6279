"""Web servers of a plan: their configuration, and the rows of their access logs."""
