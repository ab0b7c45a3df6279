"""`verify`: the source and the lake, read and compared."""
