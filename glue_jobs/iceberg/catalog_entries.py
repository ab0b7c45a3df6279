"""Entries of a database's tables in the Glue catalog; `glue` is boto3's client."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError


def table_entries(glue: Any, database: str) -> dict[str, dict[str, Any]]:
    """Return the entries of all tables of the database by name."""
    pages = glue.get_paginator("get_tables").paginate(DatabaseName=database)
    return {entry["Name"]: entry for page in pages for entry in page["TableList"]}


def table_entry(glue: Any, database: str, name: str) -> dict[str, Any] | None:
    """Return the table's entry; None if the catalog has none."""
    try:
        found = glue.get_table(DatabaseName=database, Name=name)
    except ClientError as error:
        if error.response["Error"]["Code"] == "EntityNotFoundException":
            return None
        raise
    return dict(found["Table"])
