"""Iceberg's side: schemas, DDL, the fold, the merge and the views, all as SQL text."""
