"""Recorded events by both ways into the lake, on a real Iceberg catalog: stream and Firehose."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import epoch_start, history_part
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.schemas import changes_schema
from cdclake.iceberg.views import current_view
from cdclake.jobs.apply.changelog_commits import commits_since
from cdclake.jobs.apply.firehose_changelog import apply_log
from cdclake.jobs.apply.rebuilt_state import applied_through, rebuild_state
from cdclake.local.firehose.fault_injection import NO_FAULTS, FaultInjector
from cdclake.plan import Plan, Table
from tests.recorded.firehose import Delivered, deliver, delivered
from tests.recorded.recording import EPOCH, Record, Recording
from tests.spark.events import Engine

# What a value is made of that JSON holds as a number.
_FROM_JSON = {"timestamp": "timestamp_micros({})", "date": "date_from_unix_date({})"}
_READ_AS = {"timestamp": "bigint", "date": "int"}

Row = tuple[Any, ...]


def under_a_new_name(recording: Recording, table: str) -> Plan:
    """The recording's plan with that table alone, which no other test has."""
    plan = recording.plan
    found = plan.table(table)
    named = replace(found, name=f"{found.name}_{uuid.uuid4().hex[:8]}", apply="each_batch")
    return replace(plan, lake_database="cdc", tables=(named,))


@dataclass
class FirehoseLog:
    """A table whose log gets commits as Firehose makes them, and which is applied from it."""

    spark: SparkSession
    plan: Plan
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        self.plan = delivered(self.plan)
        self.engine = Engine(self.spark, self.plan)

    @property
    def table(self) -> Table:
        """The only one."""
        return self.plan.tables[0]

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """The log's columns and their types."""
        return dict(changes_schema(self.table, self.plan).columns)

    def commit(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows in one commit."""
        given = ", ".join(f"`{n}`: {_READ_AS.get(kind, kind)}" for n, kind in self.kinds.items())
        columns = [
            f"{_FROM_JSON.get(kind, '{}').format(SPARK.name(name))} AS {SPARK.name(name)}"
            for name, kind in self.kinds.items()
        ]
        # Firehose's stand-in has parsed numbers with a fraction as Decimal, for columns of doubles.
        # One literal, which Spark reads while it plans: no Python worker has to be asked.
        text = F.from_json(F.lit(json.dumps(rows, default=float)), f"array<struct<{given}>>")
        frame = self.spark.range(1).select(F.inline(text)).selectExpr(*columns)
        log = self.engine.lake.qualified(self.table.changes)
        frame.writeTo(log).option("fanout-enabled", "true").append()

    def apply(self, epoch: int = 0) -> int:
        """What the apply job does with the table, after this epoch's snapshot was delivered."""
        floor = history_part(str(epoch_start(epoch))) if epoch else ""
        return apply_log(self.engine.lake, self.table, floor=floor)

    def rebuild(self) -> None:
        """Make the state again from the log."""
        rebuild_state(self.engine.lake, self.table)

    def current(self) -> list[Row]:
        """The rows of `<t>_current`, as a reader makes the view."""
        lake = self.engine.lake
        applied = applied_through(lake, self.table)
        after = commits_since(lake, self.table, applied.sequence).after
        if after is not None:
            applied = replace(applied, ingested=after)
        select = current_view(
            self.table,
            state=lake.qualified(self.table.name),
            changes=lake.qualified(self.table.changes),
            applied=applied,
            dialect=SPARK,
        )
        return values(self.spark.sql(select), self.table)

    def state(self) -> list[Row]:
        """The live rows of `<t>`, its declared columns alone: none is below a sweep applied."""
        rows = self.engine.lake.read(self.table.name).where(f"NOT {naming.DELETED}")
        floor = applied_through(self.engine.lake, self.table).floor
        if floor:
            assert rows.where(f"{naming.POSITION} < {SPARK.text(floor)}").isEmpty()
        return values(rows, self.table)

    def deliver(
        self, records: Sequence[Record], faults: FaultInjector = NO_FAULTS, *, at_once: int = 10
    ) -> Delivered:
        """Have the emulator deliver the records; nothing is committed yet."""
        return deliver(records, self.table, self.plan, faults, at_once=at_once)


def streamed(spark: SparkSession, plan: Plan, records: Sequence[Record]) -> Engine:
    """The records by way of the stream, in one batch."""
    engine = Engine(spark, plan)
    rows = [(r.topic, r.partition, r.offset, r.key, r.value, list(r.headers)) for r in records]
    ranges = {0: (0, records[-1].offset + 1)}
    outcome = engine.run_records(rows, ranges, epoch=EPOCH)
    assert (outcome.quarantined, engine.is_applied) == (0, True)
    return engine


def logged(rows: DataFrame) -> list[Row]:
    """A log's rows by position, without when and how often they were ingested."""
    kept = rows.drop(naming.INGESTED_AT).selectExpr(
        *(_comparable(*kind) for kind in rows.dtypes if kind[0] != naming.INGESTED_AT)
    )
    return sorted({_hashable(row) for row in kept.collect()}, key=repr)


def stored(rows: DataFrame) -> list[Row]:
    """A state's rows with all columns."""
    return sorted(
        (
            _hashable(row)
            for row in rows.selectExpr(*(_comparable(*k) for k in rows.dtypes)).collect()
        ),
        key=repr,
    )


def values(rows: DataFrame, table: Table) -> list[Row]:
    """The declared columns of rows, comparable."""
    declared = {column.name for column in table.columns}
    chosen = [_comparable(*kind) for kind in rows.dtypes if kind[0] in declared]
    return sorted((_hashable(row) for row in rows.selectExpr(*chosen).collect()), key=repr)


def _comparable(name: str, kind: str) -> str:
    """A column in a form that Python can hold, in any year."""
    quoted = SPARK.name(name)
    if kind in ("date", "timestamp", "timestamp_ntz") or kind.startswith("decimal"):
        return f"CAST({quoted} AS STRING) AS {quoted}"
    if kind == "binary":
        return f"hex({quoted}) AS {quoted}"
    if kind.startswith("map"):
        return f"array_sort(map_entries({quoted})) AS {quoted}"
    return quoted


def _hashable(row: Iterable[Any]) -> Row:
    return tuple(tuple(sorted(map(str, each))) if isinstance(each, list) else each for each in row)
