"""A stream of two tables that is fed by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.stream_fakes import FixedPlan
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.operations.executor import OperationExecutor
from cdclake.jobs.stream.batch import MicroBatch
from tests.spark.events import RECORD, Engine, MemoryStore, plan_of

BEAT_US = 1_795_305_917_320_241

Sent = dict[str, list[Any]]  # by table: events, or (key, value) as bytes


class Stream:
    """A stream of two tables that can be started again, fed by hand."""

    def __init__(self, spark: SparkSession, **policies: Any) -> None:
        plans = [plan_of(), plan_of()]
        tables = tuple(plan.tables[0] for plan in plans)
        self.plan = replace(plans[0], tables=tables, stop_table_after=2, **policies)
        self.one, self.two = (
            Engine(spark, replace(self.plan, tables=(table,))) for table in tables
        )
        self.spark = spark
        self.control = MemoryStore()
        self.offsets: dict[str, int] = {}
        self.beats = 0
        self.start()

    def start(self) -> None:
        """As a new process."""
        plans: Any = FixedPlan(self.plan)
        control: Any = self.control
        self.process = MicroBatch(plans, control, {}, OperationExecutor(control, {}))

    def records(self, *sent: tuple[Engine, Any]) -> list[tuple[Any, ...]]:
        """Events at the next offsets of their tables' topics."""
        made = []
        for engine, event in sent:
            offset = self.offsets.setdefault(engine.table.topic, 0)
            made.append(engine.record(offset, event))
            self.offsets[engine.table.topic] += 1
        return made

    def beat(self, epoch: int, op: str = "u", sent_s: int = 0, lsn: int = 1) -> tuple[Any, ...]:
        """A heartbeat's record, as all batches have one but perhaps the first ones."""
        self.beats += 1
        source = {"ts_us": BEAT_US, "lsn": lsn}
        event = {"op": op, "cdc_epoch": str(epoch), "source": source, "ts_ms": 1000 * (sent_s + 1)}
        value = json.dumps(event).encode()
        return (self.plan.heartbeat_rows_topic, 0, self.beats, b"{}", value, None)

    def run(self, *records: tuple[Any, ...], epoch: int | None = 1) -> None:
        """One batch of these records and a heartbeat of the epoch, if one is given."""
        beats = [] if epoch is None else [self.beat(epoch)]
        self.process(self.spark.createDataFrame([*records, *beats], RECORD), 0)

    def progress(self) -> Progress:
        return Progress.load(self.control)  # type: ignore[arg-type]
