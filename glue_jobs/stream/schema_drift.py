"""Detection of schema drift: events that no longer match the table's declared columns.

The columns of a source change between two events. An event that lacks a column of an earlier event,
or two consecutive events with another form of it, come after such a change: the table stops before
them. Events from before a column was added, or from before the connector knew it, lack it
legitimately. "Earlier" means a lower position: a restarted connector sends old events again at new
offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import Position
from cdclake.debezium.types import parse_type
from cdclake.errors import APPLY_FILE
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.evolution import can_become
from cdclake.iceberg.limit_condition import is_withheld
from cdclake.jobs.stream.changelog_columns import ABSENT, MISFITS, REFUSAL
from cdclake.jobs.stream.partition_summary import (
    COMPLETE_ROW,
    LACKING_ROW,
    MISFIT,
    PartitionSummary,
)
from cdclake.plan import Column, Table
from cdclake.postgres.file_lines import renamed_line

# Refused for its key: a dropped key column makes every key wrong. A row that a rule withholds is
# read completely.
_BY_KEY = f"({REFUSAL} LIKE 'NULL_KEY%' OR {REFUSAL} LIKE 'KEY_MISMATCH%')"
_IS_READ = f"({REFUSAL} IS NULL OR {is_withheld(REFUSAL)})"
_IS_ROW = f"{naming.OP} IN ('c', 'u', 'r') AND ({_IS_READ} OR {_BY_KEY})"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownColumns:
    """Columns seen in a table's earlier events; `first_seen` is keyed by `column_key`."""

    first_seen: Mapping[str, str] = field(default_factory=dict)  # position of first event
    suspected: Collection[str] = ()  # source names: the last event with a value was a misfit


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Result of comparing a batch's events with the declared columns."""

    known: KnownColumns
    # By partition, the offset of the first event to stop at.
    stop_offsets: Mapping[int, int] = field(default_factory=dict)
    gone: tuple[str, ...] = ()  # declared columns that are missing from there on
    retyped: tuple[str, ...] = ()  # declared columns with another form from there on

    @property
    def columns(self) -> tuple[str, ...]:
        """All drifted columns, by their names in the source."""
        return (*self.gone, *self.retyped)


def column_key(column: Column) -> str:
    """Return the key of a column in `first_seen`."""
    return f"{column.source} {column.type}"


def followed_columns(first_seen: Mapping[str, str], table: Table) -> dict[str, str]:
    """Return `first_seen` for the declared columns, also for those whose type was widened.

    A column of any other type is a new one, and so is one that is declared again.
    """
    followed = {}
    for column in table.columns:
        at = [position for key, position in first_seen.items() if _is_earlier(key, column)]
        if at:
            followed[column_key(column)] = min(at)
    return followed


def _is_earlier(key: str, column: Column) -> bool:
    """Return whether the key is the column's, with its type or one that can become it."""
    if key == column_key(column):
        return True
    if not key.startswith(f"{column.source} "):
        return False
    earlier = parse_type(key.removeprefix(f"{column.source} "))
    return earlier is not None and can_become(earlier, column.column_type)


def find_drift(
    table: Table,
    parts: Sequence[PartitionSummary],
    known: KnownColumns,
    decode: Callable[[], DataFrame],
) -> Drift:
    """Find drift in a batch's events; `decode` is called only if the summaries are suspicious."""
    if not any(part.flags & {COMPLETE_ROW, LACKING_ROW, MISFIT} for part in parts):
        return Drift(known=known)
    absent = {source for part in parts for source in part.absent}
    if not _is_odd(parts, absent, table, known):
        present = [column for column in table.columns if column.source not in absent]
        if _were_all_seen(present, parts, known):
            return Drift(known=KnownColumns(first_seen=known.first_seen))
        first = min(at for part in parts if (at := part.lowest_row_position) is not None)
        found = {column.source: first for column in present}
        return Drift(known=KnownColumns(first_seen=_seen_too(known.first_seen, table, found)))
    return _drift_of_rows(decode(), table, known)


def _drift_of_rows(decoded: DataFrame, table: Table, known: KnownColumns) -> Drift:
    firsts = _first_present(decoded, table)
    first_seen = _seen_too(known.first_seen, table, _lowest(firsts))
    gone = _gone(decoded, table, known, first_seen, firsts)
    retyped, suspected = _retyped(decoded, table, known.suspected)
    return Drift(
        known=KnownColumns(first_seen=first_seen, suspected=(*suspected, *retyped)),
        stop_offsets=_stop_offsets(decoded, [*gone.values(), *retyped.values()]),
        gone=tuple(gone),
        retyped=tuple(source for source in retyped if source not in gone),
    )


def _is_odd(
    parts: Iterable[PartitionSummary], absent: set[str], table: Table, known: KnownColumns
) -> bool:
    """Return whether some event has a misfit or lacks a column that another event has."""
    had = {c.source for c in table.columns if column_key(c) in known.first_seen}
    return bool(had & absent) or any(
        part.has(MISFIT) or (part.has(LACKING_ROW) and part.has(COMPLETE_ROW)) for part in parts
    )


def _were_all_seen(
    present: Iterable[Column], parts: Iterable[PartitionSummary], known: KnownColumns
) -> bool:
    """Return whether all these columns were first seen before the batch's lowest position."""
    lowest = min(
        str(Position(part.lowest_row_epoch, part.lowest_row_prev, 0, 0, 0))
        for part in parts
        if part.lowest_row_epoch is not None and part.lowest_row_prev is not None
    )
    first_seen = (known.first_seen.get(column_key(column)) for column in present)
    return all(at is not None and at <= lowest for at in first_seen)


def _seen_too(
    first_seen: Mapping[str, str], table: Table, present: Mapping[str, str]
) -> dict[str, str]:
    """Update `first_seen` with this batch's columns; forget columns that are not declared.

    The lowest position counts: events below it may be older than the column.
    """
    found = {}
    for column in table.columns:
        at = [p for p in (first_seen.get(column_key(column)), present.get(column.source)) if p]
        if at:
            found[column_key(column)] = min(at)
    return found


@dataclass(frozen=True, slots=True)
class _First:
    """First events of a partition with each column, by source name."""

    partition: int
    position: Mapping[str, str]
    offset: Mapping[str, int]


def _first_present(decoded: DataFrame, table: Table) -> list[_First]:
    lowest = [
        F.expr(f"min(IF({_holds(ABSENT, c.source)}, NULL, {fact})) AS {fact}_{index}")
        for index, c in enumerate(table.columns)
        for fact in (naming.POSITION, naming.OFFSET)
    ]
    rows = decoded.where(_IS_ROW).groupBy(naming.PARTITION).agg(*lowest).collect()

    def held(row: Row, fact: str) -> dict[str, Any]:
        values = {c.source: row[f"{fact}_{index}"] for index, c in enumerate(table.columns)}
        return {source: value for source, value in values.items() if value is not None}

    return [
        _First(row[naming.PARTITION], held(row, naming.POSITION), held(row, naming.OFFSET))
        for row in rows
    ]


def _lowest(firsts: Collection[_First]) -> dict[str, str]:
    sources = {source for first in firsts for source in first.position}
    return {
        source: min(first.position[source] for first in firsts if source in first.position)
        for source in sources
    }


def _gone(
    decoded: DataFrame,
    table: Table,
    known: KnownColumns,
    first_seen: Mapping[str, str],
    firsts: Collection[_First],
) -> dict[str, str]:
    """Find columns that an event lacks although an earlier one had them, with the condition.

    The earlier event must have a lower position and be read earlier: a restarted connector may send
    the first events with a column again, below others that it sent without the column before it
    knew it.
    """
    lacking = {}
    for column in table.columns:
        key, source = column_key(column), column.source
        if key not in first_seen:
            continue
        later = f"{_IS_ROW} AND {_holds(ABSENT, source)}"
        later += f" AND {naming.POSITION} > {SPARK.text(first_seen[key])}"
        if key not in known.first_seen:
            read = [
                f"({naming.PARTITION} = {f.partition} AND {naming.OFFSET} > {f.offset[source]})"
                for f in firsts
                if source in f.offset
            ]
            later += f" AND ({' OR '.join(read)})"
        lacking[source] = later
    if not lacking:
        return {}
    counted = [F.expr(f"count_if({c}) AS n{i}") for i, c in enumerate(lacking.values())]
    row = decoded.agg(*counted).collect()[0]
    return {name: c for i, (name, c) in enumerate(lacking.items()) if row[f"n{i}"]}


def _retyped(
    decoded: DataFrame, table: Table, suspected: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """Find columns whose newest values are misfits, as `_gone` does, and those with only one.

    A single misfit is quarantined; a second in a row shows that the column's type has changed.
    """
    offset, by_column = naming.OFFSET, {c.source: c for c in table.columns}
    misfits = decoded.select(F.explode(MISFITS).alias("source")).distinct().collect()
    retyped, still = {}, []
    for source in sorted(row["source"] for row in misfits):
        is_misfit = _holds(MISFITS, source)
        fits = f"{_IS_READ} AND {SPARK.name(by_column[source].name)} IS NOT NULL"
        after = []
        for part in _newest_fit(decoded, is_misfit, fits):
            newest = f"{naming.PARTITION} = {part['partition']} AND {offset} > {part['fit']}"
            count = decoded.where(f"{is_misfit} AND {newest}").count()
            if count >= (1 if source in suspected and part["fit"] < 0 else 2):
                after.append(f"({newest})")
            elif count:
                still.append(source)
        if after:
            retyped[source] = f"{is_misfit} AND ({' OR '.join(after)})"
    return retyped, still


def _newest_fit(decoded: DataFrame, is_misfit: str, fits: str) -> list[Mapping[str, int]]:
    """Return each partition with misfits: `fit` is the offset of its last fitting value, or -1."""
    rows = decoded.groupBy(F.col(naming.PARTITION).alias("partition")).agg(
        F.expr(f"coalesce(max(IF({fits}, {naming.OFFSET}, NULL)), -1) AS fit"),
        F.expr(f"count_if({is_misfit}) AS misfits"),
    )
    return [row.asDict() for row in rows.where("misfits > 0").collect()]


def _stop_offsets(decoded: DataFrame, conditions: Sequence[str]) -> dict[int, int]:
    """Return by partition the offset of the first event that meets one of the conditions."""
    if not conditions:
        return {}
    changed = decoded.where(" OR ".join(f"({condition})" for condition in conditions))
    rows = changed.groupBy(naming.PARTITION).agg(F.min(naming.OFFSET).alias("first")).collect()
    return {row[naming.PARTITION]: row["first"] for row in rows}


def _holds(listed: str, source: str) -> str:
    return f"coalesce({SPARK.contains(listed, source)}, false)"


def describe_drift(table: Table, drift: Drift) -> tuple[str, str]:
    """Return the message and the remedy, with the places in the pipeline file."""
    declared = {column.source: column for column in table.columns}
    said, remedies = [], []
    for source in drift.gone:
        said.append(f"its events no longer have the column {source!r}")
        remedies.append(
            f"remove `{source}` from `columns` if it was dropped; if it was renamed, write"
            f" `{renamed_line(declared[source], 'NEW_NAME')}` in its place"
        )
    for source in drift.retyped:
        kind = declared[source].type
        said.append(
            f"its events have values of {source!r} that are not of type {kind}: its type changed"
        )
        remedies.append(
            f"declare `{source}` with its current type in the source; if it is declared so, these"
            f" are values from before the change: remove `{source}` from `columns`, and add it"
            " again when the table streams without lag"
        )
    places = ", ".join(f'tables."{table.source}".columns.{source}' for source in drift.columns)
    return "; ".join(said), f"{'; '.join(remedies)} ({places}); then {APPLY_FILE}"
