"""The product's own stream over topics that a broker has filled, each batch metered.

A batch's CPU seconds are those of its process and all below it, from one call of `foreachBatch` to
the next.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.metering import cpu_seconds
from benchmarks.orders import ORDERS, PLAN
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
    batches: Iterable[DataFrame],
    brokers: dict[str, str],
    scratch: str,
    changes: int,
    meter: BatchMeter | None = None,
) -> list[Mapping[str, Any]]:
    """Fill the topics with all records, stream `changes` a batch, and return each batch's figures.

    AssertionError unless the changelogs have every record in the end.
    """
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {naming.CATALOG}.{plan.lake_database}")
    expected = _fill_topics(plan, batches, brokers)
    figures = _run_stream(spark, plan, brokers, scratch, changes, meter or BatchMeter())
    assert appended(spark, plan) == expected
    return figures


def appended(spark: SparkSession, plan: Plan) -> int:
    """Return the number of rows in all changelogs."""
    names = (f"{naming.CATALOG}.{plan.lake_database}.{table.changes}" for table in plan.tables)
    return sum(spark.table(name).count() for name in names)


def _fill_topics(plan: Plan, batches: Iterable[DataFrame], brokers: dict[str, str]) -> int:
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
