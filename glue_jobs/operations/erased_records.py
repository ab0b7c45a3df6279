"""Search of the lake's tables for rows of erased keys, by the hashes of their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.changelog_rows import Place
from cdclake.debezium.key_spelling import one_spelling
from cdclake.debezium.record_key import record_key
from cdclake.debezium.stream_rows import StreamRows
from cdclake.debezium.types import ColumnType, Conversion
from cdclake.erasures import ErasedKeys
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.stream.plan_decoders import bytes_of, decoders_of
from cdclake.plan import Plan, Table
from cdclake.redrive.failed_events import FailedEvents
from cdclake.redrive.failed_rows import Origin
from cdclake.redrive.quarantined_records import is_of, may_be_of

LIMIT = "cdc__erased_at"
# A place names several records.
RECORD = ("topic", "partition", "offset", "key", "value", "table")


def erased_events(lake: LakeTables, table: Table, erased: ErasedKeys) -> DataFrame:
    """Return key, position and `LIMIT` of the changelog's events that are erased."""
    return erased_among(lake.read(table.changes), table, erased)


def erased_among(rows: DataFrame, table: Table, erased: ErasedKeys) -> DataFrame:
    """Return key, position and `LIMIT` of those rows of the changelog that are erased."""
    return _found(rows, table, erased)


def erased_state_keys(
    lake: LakeTables, table: Table, events: DataFrame, erased: ErasedKeys
) -> DataFrame:
    """Return the keys of erased rows as the state has them, with their `LIMIT`.

    They are those of the erased events, and those that only the state has, as far as both spell
    keys in the same way.
    """
    names = [column.name for column in table.key_columns]
    keys = events.selectExpr(
        *(
            f"{to_state(SPARK.name(c.name), c.column_type, SPARK)} AS {SPARK.name(c.name)}"
            for c in table.key_columns
        ),
        LIMIT,
    )
    if all(column.column_type.conversion is Conversion.NONE for column in table.key_columns):
        stored = _found(lake.read(table.name), table, erased)
        keys = keys.unionByName(stored.select(*keys.columns))
    return keys.groupBy(*(SPARK.name(name) for name in names)).agg(F.max(LIMIT).alias(LIMIT))


def erased_records(lake: LakeTables, table: Table, plan: Plan, erased: ErasedKeys) -> DataFrame:
    """Return the columns of `RECORD` and the reason of quarantined records that are erased.

    One without a readable position counts as older than the erasure. Records of the table may have
    another name, which the file had before, or none.
    """
    mine = lake.read(naming.QUARANTINE).where(may_be_of(table, SPARK))
    search = _SearchRecords(replace(plan, tables=(table,)).to_json(), erased)
    found = mine.select(*RECORD, "reason")
    return found.mapInArrow(search, found.schema)


def _found(rows: DataFrame, table: Table, erased: ErasedKeys) -> DataFrame:
    types = {column.name: column.column_type for column in table.key_columns}
    rows = rows.select(*(SPARK.name(name) for name in types), naming.POSITION)
    columns = [f"{SPARK.name(name)} {kind.log}" for name, kind in types.items()]
    schema = ", ".join([*columns, f"{naming.POSITION} string", f"{LIMIT} string"])
    return rows.mapInArrow(_SearchKeys(erased, tuple(types.values())), schema)


@dataclass(frozen=True, slots=True)
class _SearchKeys:
    """Function for `mapInArrow` over keys and a position, which is the last column."""

    erased: ErasedKeys
    types: tuple[ColumnType, ...]  # of the key's columns

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            *keys, positions = [column.to_pylist() for column in batch.columns]
            chosen, limits = [], []
            for row, (*key, position) in enumerate(zip(*keys, positions, strict=True)):
                if position is not None and position < self.erased.newest:
                    limit = self.erased.erased_at(list(map(one_spelling, key, self.types)))
                    if position < limit:
                        chosen.append(row)
                        limits.append(limit)
            if chosen:
                found = batch.take(pa.array(chosen))
                columns = [*found.columns, pa.array(limits, pa.string())]
                yield pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, LIMIT])


@dataclass(frozen=True, slots=True)
class _SearchRecords:
    """Function for `mapInArrow` over records with the columns of `RECORD`, and their reasons."""

    plan_json: str  # of the table alone
    erased: ErasedKeys

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoders = decoders_of(self.plan_json)
        [table] = decoders.plan.tables
        rows, failed = StreamRows(table, decoders.plan), FailedEvents(decoders.plan)
        search = _RecordSearch(table, rows, failed)
        for batch in batches:
            keys = bytes_of(batch["key"])
            values = decoders.as_json(bytes_of(batch["value"]))
            places = zip(batch["partition"].to_pylist(), batch["offset"].to_pylist(), strict=True)
            origins = zip(batch["table"].to_pylist(), batch["topic"].to_pylist(), strict=True)
            records = zip(places, origins, keys, values, strict=True)
            chosen = [
                row
                for row, (place, origin, key, value) in enumerate(records)
                if is_of(search.table, *origin, value)
                and search.is_erased(Place(*place), origin[0], key, value, self.erased)
            ]
            if chosen:
                yield batch.take(pa.array(chosen))


@dataclass(frozen=True, slots=True)
class _RecordSearch:
    table: Table
    rows: StreamRows
    failed: FailedEvents

    def is_erased(
        self,
        place: Place,
        named: str | None,
        key: bytes | None,
        value: bytes | None,
        erased: ErasedKeys,
    ) -> bool:
        """Return whether a record is older than its key's erasure, or has no readable position.

        Under another name the table may have had another key: then the row has the columns.
        """
        if place.partition is None:  # the redrive of Firehose's failed records has put it there
            event = self.failed.read(value or b"", Origin.one(self.table.name))
            return event is not None and event.is_erased({self.table.name: erased})
        decoded = self.rows.row(key, value, place)
        position = decoded.values[naming.POSITION] if decoded is not None else None
        forms = (key,) if named == self.table.name else (key, None)
        found = (record_key(self.table, each, value) for each in forms)
        return (position or "") < max(map(erased.erased_at, found))
