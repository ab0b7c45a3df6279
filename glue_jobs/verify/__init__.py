"""`verify`: comparison of the source with the lake."""
