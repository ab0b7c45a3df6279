"""Page of `cdclake ui`: a server on this machine, and its additions to the JSON of commands."""
