"""Trino as a reader of the local lake, by the SQL that Athena gets."""
