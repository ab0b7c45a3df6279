"""The `cdclake` command: one file per verb, registered in `cdclake.cli.main`."""
