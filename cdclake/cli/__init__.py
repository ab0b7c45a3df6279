"""The `cdclake` command: one file a verb, registered in `cdclake.cli.main`."""
