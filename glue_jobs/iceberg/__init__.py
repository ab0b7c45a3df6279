"""Iceberg tables as the jobs read and write them."""
