"""Erasure of rows from a lake, step by step, and its proof: shared by local lakes and AWS."""
