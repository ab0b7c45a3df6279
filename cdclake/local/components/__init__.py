"""The lake's server processes, one module each: `prepare` the files, build the `component`."""
