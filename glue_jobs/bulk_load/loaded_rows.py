"""Conversion of rows that a query has read from the source to rows of the changelog."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import SNAPSHOT_PHASE, Position, history_part
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.stream.append import LOAD_PARTITION
from cdclake.jobs.stream.changelog_columns import FACT_COLUMNS, REFUSAL
from cdclake.jobs.stream.refusal_reasons import (
    Reason,
    broken_rules,
    first_reason,
    unrepresentable,
)
from cdclake.plan import Column, Plan, Table
from cdclake.postgres.bulk_read import value_name
from cdclake.postgres.event_values import is_json

RECORD = {"key": "cdc__key", "value": "cdc__value", "headers": "cdc__headers"}  # by Kafka's name
SNAPSHOT_OP = "r"
_LOAD_BITS, _CHUNK_BITS = 46, 33  # more rows than a chunk has, and 8192 chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlace:
    """Place, in the order of events, of the rows that one reading of the source has found."""

    epoch: int
    prev_commit_lsn: int = 0
    phase: int = SNAPSHOT_PHASE
    lsn: int
    partition: int = LOAD_PARTITION
    read_at: int  # microseconds since 1970

    @property
    def start(self) -> Position:
        """Return the position of the first row."""
        return Position(self.epoch, self.prev_commit_lsn, self.phase, self.lsn, 0)


def read_events(
    source_rows: DataFrame, offset: Expression, table: Table, plan: Plan, place: ReadPlace
) -> DataFrame:
    """Return rows of the source as changelog rows, with `REFUSAL` and the columns of `RECORD`.

    The columns are those of the changelog without `cdc_ingested_at`, as `EventDecoder.decode`
    returns them for a snapshot by the connector. `RECORD` is the event that the connector would
    have sent; for a load it decodes to the same row. `source_rows` has the columns `value_name`,
    and `offset` tells its rows apart.
    """
    raw = [F.col(value_name(index)) for index, _ in enumerate(table.columns)]
    values = [_as_events_spell(F.col(value_name(i)), c) for i, c in enumerate(table.columns)]
    lost = list(_lost(table))
    events = source_rows.select(
        *(value.alias(c.name) for value, c in zip(values, table.columns, strict=True)),
        *(raw[index].alias(_raw_name(index)) for index in lost),
        offset.alias(naming.OFFSET),
    )
    events = events.select("*", *_facts(place))
    return events.select(
        *(F.col(SPARK.name(column.name)) for column in table.columns),
        *FACT_COLUMNS,
        _refusal(table, plan).alias(REFUSAL),
        *_record(place, table),
    )


def last_loaded(place: ReadPlace) -> Position:
    """Return a position above every row of the load and below every later event."""
    return replace(place.start, offset=(1 << 63) - 1)


def first_offset(epoch: int, chunk: int) -> int:
    """Return the offset of a chunk's first row in a load; offsets are unique across loads."""
    return (epoch << _LOAD_BITS) + (chunk << _CHUNK_BITS)


def _as_events_spell(value: Expression, column: Column) -> Expression:
    """Write JSON as Jackson does, since the decoder stores the JSON of events that way."""
    return F.get_json_object(value, "$") if is_json(column.column_type) else value


def _lost(table: Table) -> Iterator[int]:
    """Find columns that are read as JSON, which fails for multidimensional arrays."""
    return (index for index, column in enumerate(table.columns) if is_json(column.column_type))


def _raw_name(index: int) -> str:
    return f"cdc__raw_{index}"


def _facts(place: ReadPlace) -> list[Expression]:
    """Return the event columns: equal for all rows, except the offset."""
    start = history_part(str(place.start))
    offset = F.lpad(F.lower(F.hex(F.col(naming.OFFSET))), 16, "0")
    facts = {
        naming.OP: F.lit(SNAPSHOT_OP),
        naming.POSITION: F.concat(F.lit(f"{start}."), offset),
        naming.TX_ID: F.lit(None).cast("bigint"),
        naming.COMMITTED_AT: F.timestamp_micros(F.lit(place.read_at)),
        naming.PARTITION: F.lit(place.partition),
        naming.EPOCH: F.lit(place.epoch),
        naming.LSN: F.lit(place.lsn).cast("bigint"),
        naming.PREV_COMMIT_LSN: F.lit(place.prev_commit_lsn).cast("bigint"),
        naming.PHASE: F.lit(place.phase),
        naming.UNAVAILABLE: F.lit(None).cast("array<string>"),
    }
    return [value.alias(name) for name, value in facts.items()]


def _refusal(table: Table, plan: Plan) -> Expression:
    """Return the first reason to refuse the row, NULL if there is none."""
    nulls = [
        (F.col(SPARK.name(key)).isNull(), "NULL_KEY: a key column is NULL") for key in table.key
    ]
    unheld = unrepresentable(table, plan)
    return first_reason([*nulls, *_unsendable(table), *unheld, *broken_rules(table)])


def _unsendable(table: Table) -> list[Reason]:
    """List the values that cannot be written as an event."""
    reasons: list[Reason] = []
    for index in _lost(table):
        name = table.columns[index].name
        lost = F.col(_raw_name(index)).isNotNull() & F.col(SPARK.name(name)).isNull()
        reason = f"NOT_REPRESENTABLE: {name!r} cannot be written as an event (multidimensional?)"
        reasons.append((lost, reason))
    return reasons


def _record(place: ReadPlace, table: Table) -> list[Expression]:
    """Build key and value as the connector would have sent them, for the quarantine.

    The row is left out if one of its values cannot be written: a replay must not read it as NULL.
    """
    by_source = {c.source: F.col(SPARK.name(c.name)).alias(c.source) for c in table.columns}
    source = F.struct(
        F.lit(place.lsn).alias("lsn"),
        F.lit(f'[null,"{place.lsn}"]').alias("sequence"),
        F.lit(place.read_at).alias("ts_us"),
    )
    unsendable = first_reason([*_unsendable(table), (F.lit(False), "")])
    event = F.struct(
        F.when(unsendable.isNull(), F.struct(*by_source.values())).alias("after"),
        source.alias("source"),
        F.lit(SNAPSHOT_OP).alias("op"),
        F.lit(str(place.epoch)).alias(naming.EPOCH),
    )
    key = F.struct(*(by_source[column.source] for column in table.key_columns))
    return [
        F.to_json(key).cast("binary").alias(RECORD["key"]),
        F.to_json(event).cast("binary").alias(RECORD["value"]),
        F.lit(None).cast("array<struct<key:string,value:binary>>").alias(RECORD["headers"]),
    ]
