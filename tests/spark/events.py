"""Debezium events in short, and an engine that takes them: one table, on a real Iceberg catalog."""

import json
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.stream_fakes import MemoryStore as MemoryStore
from cdclake.debezium.position import epoch_start
from cdclake.erasures import ErasedKeys
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.schemas import all_schemas
from cdclake.iceberg.views import current_view
from cdclake.jobs.apply.rebuilt_state import applied_through, ingested_through
from cdclake.jobs.apply.state_table import apply_changes
from cdclake.jobs.apply.state_update import StateUpdate
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.jvm.java import each
from cdclake.jobs.stream.table_stream import Outcome, Replaced, TableStream
from cdclake.plan import Column, Plan, Table

RECORD = (
    "topic string, partition int, offset bigint, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)


def plan_of(**table: Any) -> Plan:
    """A plan of one table with a new name: id bigint (key), v text, big text.

    Its trigger leaves each batch time for all states, however slow the machine is.
    """
    name = f"t_{uuid.uuid4().hex[:8]}"
    columns = tuple(
        Column(source=source, name=source, type=kind)
        for source, kind in (("id", "bigint"), ("v", "text"), ("big", "text"))
    )
    made = Table(
        schema="public", table=name, name=name, topic=f"x.public.{name}", key=("id",),
        **{"columns": columns, **table},
    )  # fmt: skip
    return Plan(
        name="x", source_database="d", lake_database="cdc", tables=(made,), trigger_seconds=3600
    )


class FreeLeases(Leases):
    """Leases in memory, since these tests have no S3."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(), "test")  # type: ignore[arg-type]


@dataclass
class Engine:
    """Feeds events of one table to the stream's code, and shows what became of them."""

    spark: SparkSession
    plan: Plan = field(default_factory=plan_of)
    leases: Leases = field(default_factory=FreeLeases)
    next_offset: int = 0
    place: TableProgress = field(default_factory=TableProgress)
    erased: ErasedKeys | None = None
    is_applied: bool = False  # the last batch has brought the state up to date

    def __post_init__(self) -> None:
        self.table = self.plan.tables[0]
        self.spark.sql("CREATE DATABASE IF NOT EXISTS lake.cdc")
        self.lake = LakeTables(self.spark, "cdc")
        for schema in all_schemas(self.plan):
            self.lake.create(schema)

    def run(
        self, *events: "dict[str, Any] | tuple[bytes | None, bytes | None]", **how: Any
    ) -> Outcome:
        """One batch of these events at the next offsets, or at `offset`."""
        first = how.pop("offset", self.next_offset)
        records = [self.record(first + index, event) for index, event in enumerate(events)]
        self.next_offset = max(self.next_offset, first + len(records))
        return self.run_records(records, {0: (first, first + len(records))}, **how)

    def run_records(
        self, records: list[tuple[Any, ...]], ranges: dict[int, tuple[int, int]], **how: Any
    ) -> Outcome:
        """One batch of these Kafka records, which cover these offsets.

        The snapshot of a later epoch is complete, unless `replaced` says otherwise.
        """
        frame = self.spark.createDataFrame(records, RECORD)
        stream, apply_now = self.stream(), how.pop("apply_now", True)
        epoch = how.pop("epoch", 1)
        complete = Replaced(str(epoch_start(epoch)), is_swept=False) if epoch > 1 else Replaced()
        done = stream.run(frame, ranges, epoch=epoch, replaced=how.pop("replaced", complete))
        if done.drift is not None:
            self.place.first_seen = dict(done.drift.known.first_seen)
            self.place.suspected = list(done.drift.known.suspected)
        self.place.advance(done.taken)
        self.is_applied = apply_now and stream.apply()
        return done

    def apply(self, through: int | None = None) -> int:
        """Apply what the state lacks, as the job does; the number of events."""
        until = ingested_through(self.lake, self.table) if through is None else through
        return apply_changes(StateUpdate(self.lake, self.table), through=until)

    def stream(self, *, apply_now: bool = True) -> TableStream:
        """The table's stream under the plan of now; without `apply_now` it updates no state."""
        table = self.table if apply_now else replace(self.table, apply="scheduled")
        return TableStream(
            lake=self.lake, plan=self.plan, table=table, leases=self.leases, place=self.place,
            erased=self.erased, remember_quarantined=self.place.note_quarantined,
        )  # fmt: skip

    def declare(self, plan: Plan) -> None:
        """The same table under another plan."""
        self.plan, self.table = plan, plan.tables[0]

    def record(self, offset: int, event: Any) -> tuple[Any, ...]:
        """The Kafka record of an event at an offset of partition 0."""
        if isinstance(event, tuple):
            key, value = event
        else:
            key = None if event["key"] is None else json.dumps(event["key"]).encode()
            value = json.dumps(event["value"], separators=(",", ":")).encode()  # as Debezium does
        return (self.table.topic, 0, offset, key, value, None)

    def event(
        self, op: str, prev: int | None, lsn: int, *, id: int | None = 1, **how: Any
    ) -> dict[str, Any]:
        """An event of row `id`: `v=` and `big=` are its values, a value of `...` was not sent."""
        values = {
            name: self.plan.placeholder if how.get(name) is ... else how.get(name)
            for name in ("v", "big")
        }
        row = {"id": id, **values}
        source = {
            "lsn": None if how.get("incremental") else lsn,
            "sequence": json.dumps([None if prev is None else str(prev), str(lsn)]),
            "txId": how.get("tx", lsn),
            "ts_us": how.get("ts", 1_700_000_000_000_000),
        }
        value = {
            "before": how.get("before"),
            "after": row if op in "cur" else None,
            "source": source,
            "op": op,
            "cdc_epoch": str(how.get("epoch", 1)),
        }
        return {"key": None if op == "t" else {"id": id}, "value": value}

    def state(self) -> dict[int, tuple[Any, ...]]:
        """Live rows by id: (v, big)."""
        rows = self.lake.read(self.table.name).where("NOT cdc_deleted").collect()
        assert len({row["id"] for row in rows}) == len(rows), "two rows of one key"
        return {row["id"]: (row["v"], row["big"]) for row in rows}

    def shown(self) -> list[Any]:
        """Rows of Spark's view of the newest state, by id."""
        view = current_view(
            self.table,
            state=self.lake.qualified(self.table.name),
            changes=self.lake.qualified(self.table.changes),
            applied=applied_through(self.lake, self.table),
            dialect=SPARK,
        )
        return self.spark.sql(view).orderBy("id").collect()

    def log(self) -> list[Any]:
        """The log, by position."""
        return self.lake.read(self.table.changes).orderBy("cdc_position").collect()

    def quarantined(self) -> list[Any]:
        """Refused events of this table."""
        rows = self.lake.read("cdclake_quarantine").where(f"topic = '{self.table.topic}'")
        return rows.orderBy("offset").collect()


def deletes_to_open(engine: Engine) -> list[int]:
    """Of each of the state's data files: how many files of deletes its readers open."""
    planned = engine.lake.load(engine.table.name).newScan().planFiles()
    return [task.deletes().size() for task in each(planned)]
