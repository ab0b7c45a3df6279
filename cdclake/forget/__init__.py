"""Erasure of rows: what a plan does not allow, and the report."""
