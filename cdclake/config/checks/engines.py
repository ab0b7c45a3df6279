"""Checks of the limits of the engines, and of policies that lose values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdclake.config.document import Document
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem
from cdclake.iceberg.reader_facts import DEFAULT_READERS, READER_FACTS


def check_format_version(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse format version 3 with a reader that lacks it, or with Firehose as a writer."""
    version = document.get("lake", "format_version")
    if version != 3:
        return
    readers = document.mapping("lake").get("readers", DEFAULT_READERS)
    listed = readers if isinstance(readers, list | tuple) else ()
    for reader in listed:
        facts = READER_FACTS.get(reader) if isinstance(reader, str) else None
        if facts is not None and version not in facts.formats:
            yield document.problem(
                ("lake", "format_version"),
                f"{facts.title} does not support format version 3 (deletion vectors:"
                f" {facts.deletion_vectors.text}; {facts.deletion_vectors.source})",
                f"write `format_version: 2`, or list `readers:` without {reader}",
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
