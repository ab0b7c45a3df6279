"""The source database's side, as SQL text and decisions: no driver, no connection, no I/O."""
