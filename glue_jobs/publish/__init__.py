"""Copies of state tables in Hudi's format, kept up to date by the keys that changed."""
