"""Other ways to apply the same changes to the same table, one file each."""
