"""The `cdclake` command: one file a verb, registered in `cli.main`."""
