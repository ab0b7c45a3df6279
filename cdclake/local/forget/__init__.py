"""Erasure of rows from a running local lake."""
