"""The four parts that are not ours, one file each: `prepare` its files, build its `component`."""
