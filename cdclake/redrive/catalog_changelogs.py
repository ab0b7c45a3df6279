"""Changelogs in the lake's catalog, including those of tables that the file no longer has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from cdclake import naming

Changelogs = Mapping[str, Collection[str]]  # by name: the columns
ReadChangelogs = Callable[[], Changelogs]

_IS_CURRENT = "iceberg.field.current"  # parameter of a column; Iceberg also lists former columns


def no_changelogs() -> Changelogs:
    """Return no changelog, where rows of tables that the file no longer has do not matter."""
    return {}


def read_changelogs(glue: Any, database: str) -> dict[str, frozenset[str]]:
    """Return the columns of each changelog of the database; `glue` is boto3's client."""
    pages = glue.get_paginator("get_tables").paginate(DatabaseName=database)
    try:
        entries = [entry for page in pages for entry in page["TableList"]]
    except glue.exceptions.EntityNotFoundException:  # no job has created the database yet
        return {}
    suffix = naming.changes_name("")
    return {
        entry["Name"]: frozenset(_columns(entry))
        for entry in entries
        if entry["Name"].endswith(suffix)
    }


def _columns(entry: Mapping[str, Any]) -> list[str]:
    return [
        column["Name"]
        for column in entry.get("StorageDescriptor", {}).get("Columns", [])
        if column.get("Parameters", {}).get(_IS_CURRENT) != "false"
    ]
