"""Checks of the limits of the engines, and of policies that lose values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdclake.config.document import Document
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem

_DEFAULT_READERS = ("athena", "spark", "duckdb")


def check_format_version(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse format version 3 with Athena as a reader or Firehose as a writer."""
    if document.get("lake", "format_version") != 3:
        return
    readers = document.mapping("lake").get("readers", _DEFAULT_READERS)
    if isinstance(readers, list | tuple) and "athena" in readers:
        yield document.problem(
            ("lake", "format_version"),
            "Athena cannot read format version 3",
            "write `format_version: 2`, or list `readers:` without athena",
        )
    for table in tables:
        if table.entry.get("delivery") == "firehose":
            yield document.problem(
                (*table.location, "delivery"),
                f"Firehose cannot write {table.spelled!r} with format version 3",
                "write `delivery: stream` here, or `format_version: 2` under `lake:`",
            )


def check_policies(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse an empty `not_representable:`: YAML reads it as null, which would lose values."""
    del tables
    location = ("policies", "not_representable")
    span = document.spans.get(location)
    if span is not None and span.empty:
        yield document.problem(
            location, "`not_representable` has no value", "write `quarantine` or `null`"
        )
