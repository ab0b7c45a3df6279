"""Collapse of the changelog's old days: one event with the result of all old events of a key.

Rebuilding the state from a collapsed changelog gives the same state: the fold takes a maximum over
positions, and the newest event, completed with the values of older ones, is that maximum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from cdclake import naming
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.key_values import key_values
from cdclake.iceberg.latest_row import CREATED_AT, created_at
from cdclake.plan import Plan, Table

# How long a delete is kept after its ingestion: longer than any event that it must outlive can be
# read again, twice Kafka's retention of seven days. Its commit may be much older than that.
TOMBSTONE_HORIZON = timedelta(days=14)
# Maximum age of a late event: the delete of an older one might be purged before the event is
# applied. A delivery takes hours at worst.
YOUNG = TOMBSTONE_HORIZON - timedelta(days=1)


def collapse_age(history_days: int) -> timedelta:
    """Return the age at which events collapse: replayed and redriven events are younger.

    >>> collapse_age(3).days, collapse_age(90).days
    (14, 90)
    """
    return max(timedelta(days=history_days), TOMBSTONE_HORIZON)


def history_notes(plan: Plan) -> Iterator[str]:
    """Yield a note if the changelogs keep more days than the file asks for."""
    kept = collapse_age(plan.history_days).days
    if plan.all_tables and kept > plan.history_days:
        yield (
            f"`history_days: {plan.history_days}` counts as {kept}: late events need the rows"
            " of these days"
        )


def replay_age(table: Table, history_days: int) -> timedelta | None:
    """Return the maximum age of an event of a row that is read again; None for any age.

    With soft deletes no delete is purged, but a collapse gives old values to newer events of the
    row, and a value that is read again would then be older than these.
    """
    if table.deletes != "soft":
        return YOUNG
    return collapse_age(history_days) - timedelta(days=1) if table.toastable else None


def midnight(day: str) -> int:
    """Return the start of a day in UTC, in microseconds since 1970.

    >>> midnight("1970-01-02")
    86400000000
    """
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) * 1_000_000


def complete_before(properties: Mapping[str, str], sequence: int) -> int | None:
    """Return a time such that a reader of all commits up to `sequence` has all earlier rows.

    In microseconds since 1970; None if no such time is known. `properties` are those of a changelog
    that Firehose writes. A collapse gives all rows that it keeps a new sequence number, so without
    this time every reader would read them again. It is the last collapsed day's end: all rows
    ingested before were committed up to `COLLAPSED_SEQUENCE`, which the reader must have reached.

    - A collapse notes that number after it has begun to read, as the greatest of the days' files.
      Files that are rewritten never get a smaller one, so no row of theirs came by a later commit.
    - Its commit fails if another writer has added rows to these days since it began to read.
      `COLLAPSE_COMPLETE` is set afterwards; a collapse that has failed has raised the number alone.
    - No row comes later: the days are older than `TOMBSTONE_HORIZON`, a delivery takes hours at
      worst, and a redriven row gets the time of its redrive (`cdclake/redrive/routed_rows.py`).

    >>> noted = {naming.COLLAPSE_COMPLETE: "1970-01-02", naming.COLLAPSED_SEQUENCE: "7"}
    >>> complete_before(noted, 6), complete_before(noted, 7)
    (None, 86400000000)
    >>> complete_before({naming.COLLAPSE_COMPLETE: "1970-01-02"}, 7)  # when the stream wrote it
    """
    day, through = (
        properties.get(name) for name in (naming.COLLAPSE_COMPLETE, naming.COLLAPSED_SEQUENCE)
    )
    if day is None or through is None or sequence < int(through):
        return None
    return midnight(day)


def held_flag(dropped: Sequence[str], column: str) -> str:
    """Return the name of the flag that `<t>` has a value for the key in this dropped column."""
    return f"cdc__held_{dropped.index(column)}"


def collapsed_rows(
    table: Table,
    columns: Sequence[str],
    changes: str,
    *,
    tombstones_since: str,
    dropped: Sequence[str],
) -> str:
    """Return a SELECT in the changelog's `columns` of one event per key, and its delete if needed.

    `changes` is a relation of the changelog's old rows, without truncates and the rows below them,
    with the values of changed keys filled in. A delete that was ingested before `tombstones_since`
    (a timestamp expression) is removed with its key; with soft deletes it stays, and so do the
    values. Each `dropped` column keeps its newest value; `changes` has its flag `held_flag`.
    """
    keys = ", ".join(key_values(table, SPARK))
    is_row = f"FILTER (WHERE {naming.OP} <> 'd')"
    whole = SPARK.struct([(column, SPARK.name(column)) for column in columns])
    aggregates = [
        f"max_by({whole}, {naming.POSITION}) {is_row} AS cdc__row",
        f"max_by({whole}, {naming.POSITION}) FILTER (WHERE {naming.OP} = 'd') AS cdc__delete",
        *_newest_values(table),
        *(_dropped_value(dropped, index) for index in range(len(dropped))),
    ]
    grouped = f"SELECT {', '.join(aggregates)}\nFROM {changes}\nGROUP BY {keys}"
    row, delete = f"cdc__row.{naming.POSITION}", f"cdc__delete.{naming.POSITION}"
    row_counts = f"{delete} IS NULL OR {delete} < {row}"
    delete_counts = f"{row} IS NULL OR {delete} > {row}"
    if table.deletes == "soft":
        row_counts = "true"
    else:
        delete_counts = (
            f"({delete_counts}) AND cdc__delete.{naming.INGESTED_AT} >= {tombstones_since}"
        )
    events = (
        f"CASE WHEN {row} IS NOT NULL AND ({row_counts}) "
        f"THEN {_completed(table, columns, dropped)} END",
        f"CASE WHEN {delete} IS NOT NULL AND ({delete_counts}) THEN cdc__delete END",
    )
    return f"SELECT inline(array_compact(array({', '.join(events)})))\nFROM ({grouped}) AS grouped"


def _newest_values(table: Table) -> Iterator[str]:
    """Yield the position at which the key's newest row begins, and carried values with theirs."""
    yield created_at(table)
    for index, column in enumerate(table.toastable):
        held = SPARK.struct([("held", SPARK.name(column)), ("at", naming.POSITION)])
        unavailable = SPARK.contains(naming.UNAVAILABLE, column)
        is_held = f"{naming.OP} <> 'd' AND ({naming.UNAVAILABLE} IS NULL OR NOT {unavailable})"
        yield f"max_by({held}, {naming.POSITION}) FILTER (WHERE {is_held}) AS cdc__value_{index}"


def _dropped_value(dropped: Sequence[str], index: int) -> str:
    """Return the newest value; none if `<t>` has NULL, as then the last event with the column."""
    name, held = SPARK.name(dropped[index]), held_flag(dropped, dropped[index])
    where = f"FILTER (WHERE {name} IS NOT NULL AND {held})"
    return f"max_by({name}, {naming.POSITION}) {where} AS cdc__dropped_{index}"


def _completed(table: Table, columns: Sequence[str], dropped: Sequence[str]) -> str:
    """Return the newest row with the newest value of each carried column that was sent for it.

    Values below the begin of the key's newest row are of earlier ones.
    """
    values = {column: f"cdc__row.{SPARK.name(column)}" for column in columns}
    for index, column in enumerate(dropped):
        values[column] = f"coalesce({values[column]}, cdc__dropped_{index})"
    found = []
    for index, column in enumerate(table.toastable):
        is_own = f"cdc__value_{index}.at >= {CREATED_AT}"
        values[column] = f"CASE WHEN {is_own} THEN cdc__value_{index}.held END"
        found.append(f"CASE WHEN {is_own} THEN {SPARK.text(column)} END")
    if found:
        values[naming.UNAVAILABLE] = SPARK.without(f"cdc__row.{naming.UNAVAILABLE}", found)
    return SPARK.struct(list(values.items()))
