"""Search of everything that is stored for the values of a row: the proof of an erasure."""
