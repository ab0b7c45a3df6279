"""The source database as SQL text and decisions: no driver, no connection, no I/O."""
