"""Rows that were too large for Kafka: markers in the quarantine, which a resync settles.

A marker is settled when the changelog has a later event with the whole row of its key, or its
delete. Its position alone proves nothing: an event may be above that of a resync's request, and
still be committed before the connector began to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Row
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.oversized import Marker
from cdclake.debezium.position import history_part
from cdclake.debezium.record_key import comparable_key
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.key_values import key_value, key_values
from cdclake.jobs.iceberg.commit_retry import retry_on_conflict
from cdclake.jobs.stream.quarantined_rows import IS_MARKER
from cdclake.jobs.stream.table_stream import TableStream
from cdclake.plan import Table

_AT = "cdc__marked_at"
_KEY = "cdc__key_{}"


def unread_markers(stream: TableStream, position: str) -> list[str]:
    """Return the reasons of markers whose rows a resync that began at `position` did not read."""
    newest: dict[tuple[str, ...], tuple[Marker, str]] = {}  # by the key's values
    unknown: list[str] = []
    for row in _markers(stream):
        marker = _parsed(row, stream.table)
        if history_part(marker.position) < history_part(position):
            continue
        if marker.key is None:
            unknown.append(row["reason"])
            continue
        key = tuple(comparable_key(stream.table, marker.key))
        if key not in newest or newest[key][0].position < marker.position:
            newest[key] = (marker, row["reason"])
    # A row whose delete was too large is gone: it is stale, and nothing is to be read.
    open_markers = [(marker, reason) for marker, reason in newest.values() if marker.op != "d"]
    settled = _settled(stream, [marker for marker, _ in open_markers]) if open_markers else set()
    return [*unknown, *(reason for marker, reason in open_markers if marker.key not in settled)]


def release_markers(stream: TableStream, below: str | None) -> int:
    """Remove the table's markers, or those below a position, from the quarantine; count them.

    Call it when every row of the table has been read since. Idempotent.
    """
    rows = [row for row in _markers(stream) if below is None or _is_below(row, stream.table, below)]
    if rows:
        places = " OR ".join(_places(rows))
        quarantine = stream.lake.qualified(naming.QUARANTINE)
        markers = f"{_of(stream.table)} AND {IS_MARKER} AND ({places})"
        statement = f"DELETE FROM {quarantine} WHERE {markers}"
        retry_on_conflict(naming.QUARANTINE, lambda: stream.lake.spark.sql(statement))
    return len(rows)


def _markers(stream: TableStream) -> list[Row]:
    """Read the table's markers; they are small and few, since a table stops after too many."""
    kept = stream.lake.read(naming.QUARANTINE).where(f"{_of(stream.table)} AND {IS_MARKER}")
    return kept.select("partition", "offset", "value", "reason").orderBy("offset").collect()


def _settled(stream: TableStream, markers: Sequence[Marker]) -> set[tuple[str, ...]]:
    """Return the keys with a later event that has their whole row, or deletes it."""
    table = stream.table
    names = [_KEY.format(number) for number in range(len(table.key))]
    marked = stream.lake.spark.createDataFrame(
        [(*(marker.key or ()), marker.position) for marker in markers],
        ", ".join(f"{name} string" for name in (*names, _AT)),
    )
    log = stream.lake.read(table.changes).where(
        f"{naming.OP} IN ('r', 'd', 't') OR {naming.UNAVAILABLE} IS NULL"
    )
    found = marked.join(log, F.expr(_later_event_of_key(table, names)), "left_semi")
    return {tuple(row) for row in found.select(*names).collect()}


def _later_event_of_key(table: Table, names: Sequence[str]) -> str:
    marked = (
        key_value(f"CAST({name} AS {column.column_type.log})", column.column_type, SPARK)
        for column, name in zip(table.key_columns, names, strict=True)
    )
    own = key_values(table, SPARK)
    same = (f"{value} = {sought}" for value, sought in zip(own, marked, strict=True))
    return f"{naming.POSITION} > {_AT} AND ({naming.OP} = 't' OR ({' AND '.join(same)}))"


def _parsed(row: Row, table: Table) -> Marker:
    return Marker.parse(bytes(row["value"]), row["offset"], table)


def _of(table: Table) -> str:
    return f"topic = {SPARK.text(table.topic)} AND `table` = {SPARK.text(table.name)}"


def _is_below(row: Row, table: Table, position: str) -> bool:
    return history_part(_parsed(row, table).position) < history_part(position)


def _places(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        yield f"(partition = {row['partition']} AND offset = {row['offset']})"
