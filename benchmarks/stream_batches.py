"""The product's own stream over topics that a broker has filled, each batch metered.

A batch's CPU seconds are those of its process and all below it, from one call of `foreachBatch` to
the next.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.expected import differences
from benchmarks.kafka_records import records_of
from benchmarks.metering import cpu_seconds
from benchmarks.orders import COLUMNS, ORDERS, PLAN
from benchmarks.requests import Requests, requests_so_far
from benchmarks.stream_fakes import FixedPlan, MemoryStore, NoOperations
from cdclake import naming
from cdclake.jobs.stream import streaming_query
from cdclake.jobs.stream.batch import MicroBatch
from cdclake.jobs.stream.streaming_query import read_topics
from cdclake.jobs.stream.topic_check import KafkaTopics
from cdclake.plan import Plan, Table

Apply = Literal["each_batch", "scheduled"]


def plan_of(tables: int, apply: Apply, like: Table = ORDERS) -> Plan:
    """Return a plan of so many tables like one; `scheduled`: the stream updates no state."""
    made = tuple(
        replace(
            like, name=f"orders_{n}", table=f"orders_{n}", topic=f"bench.public.orders_{n}",
            apply=apply,
        )
        for n in range(tables)
    )  # fmt: skip
    return replace(PLAN, tables=made, mode="scheduled")


def stream_records(
    spark: SparkSession,
    plan: Plan,
    batches: Sequence[str],
    brokers: dict[str, str],
    scratch: str,
    changes: int,
    *,
    meter: BatchMeter | None = None,
    added: Mapping[str, str] | None = None,
) -> list[Mapping[str, Any]]:
    """Fill the topics with all records, stream `changes` a batch, and return each batch's figures.

    `batches` are files of changes, and `added` further columns as for `records_of`. After the last
    batch all is compared, which is in no figure: AssertionError unless the changelogs have every
    record, and the states that the stream updates the rows that DuckDB works out.
    """
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {naming.CATALOG}.{plan.lake_database}")
    read = (spark.read.parquet(batch) for batch in batches)
    records = [records_of(rows, refuse=False, added=added) for rows in read]
    expected = _fill_topics(plan, records, brokers)
    figures = _run_stream(spark, plan, brokers, scratch, changes, meter or BatchMeter())
    assert appended(spark, plan) == expected
    live = Path(scratch).with_name("live")
    _write_live_rows(spark, plan, live)
    wrong = wrong_states(plan, [Path(batch) for batch in batches], live)
    assert not wrong, f"states are wrong: {wrong}"
    return figures


def appended(spark: SparkSession, plan: Plan) -> int:
    """Return the number of rows in all changelogs."""
    names = (f"{naming.CATALOG}.{plan.lake_database}.{table.changes}" for table in plan.tables)
    return sum(spark.table(name).count() for name in names)


def wrong_states(plan: Plan, batches: Sequence[Path], live: Path) -> dict[str, str]:
    """Return how the rows in each state's folder below `live` differ, by state; {} if none does.

    Of a table with added columns only the others are compared.
    """
    tables = len(plan.tables)
    found = {
        table.name: differences(None, batches, live / table.name, _share_of(n, tables))
        for n, table in enumerate(plan.tables)
        if table.apply == "each_batch"
    }
    return {name: wrong for name, wrong in found.items() if wrong is not None}


def _write_live_rows(spark: SparkSession, plan: Plan, folder: Path) -> None:
    for table in plan.tables:
        if table.apply == "each_batch":
            state = spark.table(f"{naming.CATALOG}.{plan.lake_database}.{table.name}")
            rows = state.where(f"NOT {naming.DELETED}").select(*COLUMNS)
            rows.write.parquet(str(folder / table.name))


def _share_of(table: int, tables: int) -> str:
    """Return the condition of the changes that `_spread` gives to the table of this number."""
    return f"{naming.OFFSET} % {tables} = {table}"


def _fill_topics(plan: Plan, batches: Sequence[DataFrame], brokers: dict[str, str]) -> int:
    """Write the records of all batches to the topics, in their order; return their number."""
    written = 0
    for batch in batches:
        records = _spread(batch, plan)
        written += records.count()
        sent = records.select("topic", "key", "value")
        sent.write.format("kafka").options(**brokers).save()
    return written


def _run_stream(
    spark: SparkSession,
    plan: Plan,
    brokers: dict[str, str],
    scratch: str,
    changes: int,
    meter: BatchMeter,
) -> list[Mapping[str, Any]]:
    plans: Any = FixedPlan(plan)
    control: Any = MemoryStore()
    topics = KafkaTopics(spark, brokers)
    meter.process = MicroBatch(plans, control, brokers, NoOperations(), topics)
    # One batch of the measurement's size after the other, each with its part of every topic.
    streaming_query.MAX_OFFSETS_PER_CORE = changes // spark.sparkContext.defaultParallelism
    records = read_topics(spark, plan, brokers)
    streaming_query.start(records, meter, plan, f"{scratch}/checkpoint").awaitTermination()
    meter.look()
    return meter.figures()


def _spread(records: DataFrame, plan: Plan) -> DataFrame:
    """Divide the records among the tables' topics, each topic in its order."""
    tables = len(plan.tables)
    topic = F.concat(F.lit("bench.public.orders_"), (F.col("offset") % tables).cast("string"))
    topics = records.withColumn("topic", topic)
    return topics.repartition(4, "topic").sortWithinPartitions("topic", "offset")


@dataclass(slots=True)
class BatchMeter:
    """The stream's function, with a look at what was spent before each batch."""

    process: MicroBatch | None = None
    spent: list[tuple[float, float, Requests]] = field(default_factory=list)

    def __call__(self, records: DataFrame, number: int) -> None:
        """Process a batch."""
        self.look()
        if self.process is None:
            raise RuntimeError("the meter has no stream")
        self.process(records, number)

    def look(self) -> None:
        """Note what was spent so far."""
        self.spent.append((time.monotonic(), cpu_seconds(), requests_so_far()))

    def figures(self) -> list[Mapping[str, Any]]:
        """Return what each batch took, from one look to the next."""
        found: list[Mapping[str, Any]] = []
        for before, after in pairwise(self.spent):
            requests = after[2] - before[2]
            found.append(
                {
                    "seconds": after[0] - before[0],
                    "cpu_seconds": after[1] - before[1],
                    "s3": requests.s3,
                    "glue": requests.glue,
                }
            )
        return found
