"""Polls: rows that queries find, for tables whose log is not read."""
