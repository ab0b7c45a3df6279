"""N1a: the stream's micro-batches of one and of many tables, changelogs only: CPU seconds.

The batches are those of `MicroBatch`, whose records lie in Spark's cache: reading them from Kafka
is not part of it. A table's cost and a change's cost follow from batches of different sizes.
"""

from __future__ import annotations

import statistics
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.comparison import Arena
from benchmarks.dataset import DataSet
from benchmarks.kafka_records import records_of
from benchmarks.metering import metered
from benchmarks.orders import ORDERS, PLAN
from benchmarks.ours import Ours
from benchmarks.session import open_session
from benchmarks.sizes import Size
from benchmarks.storage import in_folder
from cdclake import naming
from cdclake.jobs.control.store import StoredObject
from cdclake.jobs.stream.batch import MicroBatch
from cdclake.plan import Plan

MANY = 20
TARGET = {"us_per_change": 15.0, "seconds_per_table": 0.05, "changes_per_cpu_second": 60_000.0}


def measure_changelog(size: Size, work: Path) -> dict[str, Any]:
    """The figures, the target, whether it is met, and every batch."""
    arena = Arena(work, in_folder)
    large, small = size.events, max(size.events // 100, MANY)
    runs = []
    for tables, changes in ((1, small), (1, large), (MANY, small), (MANY, large)):
        data = DataSet(
            folder=work / "data", rows=size.events, changes=changes, batches=size.batches,
            warm_up=size.warm_up, keys="zipf",
        ).make()  # fmt: skip
        with arena.place("changelog") as place:
            batches = [str(file) for file in data.batch_files]
            found = place.ask("benchmarks.changelog", {"batches": batches, "tables": tables})
        counted = [figures["cpu_seconds"] for figures in data.counted(found)]
        runs.append({"tables": tables, "changes": changes, "cpu_seconds": counted})
    return judged(runs)


def judged(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Compute the costs from the medians of four runs: few and many changes and tables."""
    median = {
        (run["tables"], run["changes"]): statistics.median(run["cpu_seconds"]) for run in runs
    }
    (few, much), (one, many) = (sorted({key[at] for key in median}) for at in (1, 0))
    ours = {
        "us_per_change": 1e6 * (median[one, much] - median[one, few]) / (much - few),
        "seconds_per_table": (median[many, few] - median[one, few]) / (many - one),
        "changes_per_cpu_second": much / median[one, much],
        "changes_per_cpu_second_of_many_tables": much / median[many, much],
    }
    met = (
        ours["us_per_change"] <= TARGET["us_per_change"]
        and ours["seconds_per_table"] <= TARGET["seconds_per_table"]
        and ours["changes_per_cpu_second"] >= TARGET["changes_per_cpu_second"]
    )
    shown = {name: round(value, 4) for name, value in ours.items()}
    return {"ours": shown, "peers": {}, "target": TARGET, "met": met, "runs": list(runs)}


def take(
    *, warehouse: str, scratch: str, batches: Sequence[str], tables: int
) -> list[Mapping[str, Any]]:
    """Figures of each batch; raises AssertionError unless each change is in a changelog once."""
    plan = plan_of(tables)
    spark = open_session(Ours.jars, Ours.settings(warehouse), Path(scratch))
    try:
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {naming.CATALOG}.{plan.lake_database}")
        plans: Any = _FixedPlan(plan)
        control: Any = _Memory()
        process = MicroBatch(plans, control, {}, _NoOperations())
        figures: list[Mapping[str, Any]] = []
        expected = 0
        for number, batch in enumerate(batches):
            records = _spread(records_of(spark.read.parquet(batch), refuse=False), plan).cache()
            expected += records.count()
            with metered() as meter:
                process(records, number)
            figures.append(meter.figures())
            records.unpersist()
        names = (f"{naming.CATALOG}.{plan.lake_database}.{t.changes}" for t in plan.tables)
        assert sum(spark.table(name).count() for name in names) == expected
        return figures
    finally:
        spark.stop()


def plan_of(tables: int) -> Plan:
    """A plan of so many tables like `ORDERS`, whose states are not applied by the stream."""
    made = tuple(
        replace(
            ORDERS, name=f"orders_{n}", table=f"orders_{n}", topic=f"bench.public.orders_{n}",
            apply="scheduled",
        )
        for n in range(tables)
    )  # fmt: skip
    return replace(PLAN, tables=made)


def _spread(records: DataFrame, plan: Plan) -> DataFrame:
    """The records divided among the tables' topics, each topic without gaps and in its order."""
    tables = len(plan.tables)
    topic = F.concat(F.lit("bench.public.orders_"), (F.col("offset") % tables).cast("string"))
    topics = records.withColumn("topic", topic).withColumn("offset", F.expr(f"offset div {tables}"))
    return topics.repartition(4, "topic").sortWithinPartitions("topic", "partition", "offset")


@dataclass(frozen=True, slots=True)
class _FixedPlan:
    plan: Plan

    def read(self) -> Plan:
        return self.plan


@dataclass(slots=True)
class _Memory:
    """Object store in memory, with what the stream needs of one."""

    stored: dict[str, StoredObject] = field(default_factory=dict)

    def read(self, name: str) -> StoredObject | None:
        return self.stored.get(name)

    def write_if(self, name: str, content: dict[str, Any], etag: str | None) -> str | None:
        present = self.stored.get(name)
        if (present.etag if present else None) != etag:
            return None
        self.stored[name] = StoredObject(content, uuid.uuid4().hex)
        return self.stored[name].etag

    def write(self, name: str, content: dict[str, Any]) -> None:
        self.stored[name] = StoredObject(content, uuid.uuid4().hex)

    def names(self, folder: str) -> list[str]:
        found = [name for name in self.stored if name.startswith(f"{folder}/")]
        return [name.removeprefix(f"{folder}/") for name in found]

    def delete(self, name: str) -> None:
        self.stored.pop(name, None)


class _NoOperations:
    def run(self, *_: object) -> None:
        """Run nothing: nothing is requested."""
