"""The page of `cdclake ui`: a server on this machine, and what it adds to the JSON of commands."""
