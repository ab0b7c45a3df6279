"""Facts about one row of a running lake, from the source to the readers."""
