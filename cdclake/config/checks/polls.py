"""Checks of polled tables: the column that tells their changes, and what polls cannot do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdclake.config.checks.exact_reads import check_exact_columns
from cdclake.config.document import Document
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem, did_you_mean
from cdclake.debezium.types import ColumnType

_OF_THE_LOG = ("domain", "delivery", "apply", "replica_identity", "state_freshness")
_TIMES = ("timestamptz", "timestamp")


def check_polls(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse polls by a column that tells no change, and settings that only the log has."""
    for table in tables:
        if not table.is_polled:
            continue
        poll = document.mapping(*table.location, "capture", "poll")
        yield from _check_settings(document, table, poll)
        yield from _check_by(document, table, poll)
        yield from check_exact_columns(
            document, table, "a poll", "read", lambda here: f"write {here}, or remove `capture:`"
        )


def check_deployed_polls(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse a deployment whose tables are all polled: it has a connector and a cluster."""
    if tables and all(table.is_polled for table in tables):
        yield document.problem(
            ("tables",),
            "every table is polled, and a deployment needs one whose changes come from the WAL",
            "remove `capture:` from one table, or run this pipeline as a local lake",
        )


def _check_settings(
    document: Document, table: TableOutline, poll: dict[str, object]
) -> Iterator[Problem]:
    for setting in _OF_THE_LOG:
        if setting in table.entry:
            yield document.problem(
                (*table.location, setting),
                f"{table.spelled!r} is polled, and `{setting}` is for replicated tables",
                f"remove `{setting}`, or `capture:`",
            )
    if "sweep_every" in poll and poll.get("deletes") == "none":
        yield document.problem(
            (*table.location, "capture", "poll", "sweep_every"),
            "`deletes: none` never sweeps",
            "remove `sweep_every`, or write `deletes: sweep`",
        )


def _check_by(
    document: Document, table: TableOutline, poll: dict[str, object]
) -> Iterator[Problem]:
    by = poll.get("by")
    if not isinstance(by, str):
        return
    location = (*table.location, "capture", "poll", "by")
    column = table.column(by)
    if column is None or column.excluded:
        names = [each.source for each in table.columns if not each.excluded]
        yield document.problem(
            location,
            f"{table.spelled!r} has no column {by!r}, or excludes it",
            did_you_mean(by, names) or f"name one of: {', '.join(names)}",
        )
    elif column.masked or (column.type is not None and not _tells_time(column.type)):
        yield document.problem(
            location,
            f"{by!r} of {table.spelled!r} is not an unmasked timestamp column",
            "name a column of type timestamptz or timestamp without `mask:`, that every insert and"
            " update sets to now()",
        )


def _tells_time(column_type: ColumnType) -> bool:
    return column_type.base in _TIMES and not column_type.array
