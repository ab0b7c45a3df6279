"""Glue entry point: stream one pipeline's topics into its change logs, and into its states.

Arguments: --plan s3://.../plan.json --control s3://.../control --checkpoint URI --brokers HOST:PORT
[--kafka_options JSON of further options of the source] [--deployment ID: the stream ends when the
control object `stream.json` names another] [--metrics NAME under which CloudWatch is told].
Catalog settings come by `--conf`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from cdclake import naming
from cdclake.jobs.ingest.batch import MicroBatch
from cdclake.jobs.ingest.gap import RECORD_COLUMNS
from cdclake.jobs.ingest.gauges import StreamGauges
from cdclake.jobs.ingest.handover import Handover
from cdclake.jobs.ingest.plans import CurrentPlan
from cdclake.jobs.runtime.arguments import brokers_of, read_arguments
from cdclake.jobs.runtime.logs import log_to_stdout
from cdclake.jobs.runtime.metrics import Metrics
from cdclake.jobs.runtime.objects import ObjectStore
from cdclake.jobs.runtime.session import open_session
from cdclake.plan import Plan

# A consumer asks for the next records before they are wanted, and the broker answers a connection's
# requests in order: without this a batch's offset look-ups wait 500 ms behind that question.
FETCH_WAIT_MS = "20"
MAX_OFFSETS_PER_BATCH = 200_000  # bounds a batch's memory while a snapshot's backlog is read


def main() -> None:
    """Run the stream: until it is stopped (always on), or until the topics are read (scheduled)."""
    log_to_stdout()
    arguments = read_arguments(
        ["JOB_NAME", "plan", "control", "checkpoint", "brokers"],
        ["kafka_options", "deployment", "metrics"],
    )
    plans = CurrentPlan(arguments["plan"])
    plan = plans.read()
    spark = open_session(arguments["JOB_NAME"])
    brokers = brokers_of(arguments)
    control = ObjectStore(arguments["control"])
    handover = Handover(control, arguments.get("deployment"))
    batch = handover.guarded(MicroBatch(plans, control, brokers))
    query = start(read_topics(spark, plan, brokers), batch, plan, arguments["checkpoint"])
    gauges = StreamGauges(control, Metrics(arguments.get("metrics")))
    handover.await_end(query, lambda: gauges.tell_if_due(query.lastProgress))
    gauges.tell(query.lastProgress)  # in the scheduled mode, perhaps for the first time


def read_topics(spark: SparkSession, plan: Plan, brokers: dict[str, str]) -> DataFrame:
    """Records of every topic of the pipeline, also of those that are added later.

    By pattern, since a checkpoint does not take a changed list of topics. A lost offset fails the
    query: skipping events in silence is never right.
    """
    return (
        spark.readStream.format("kafka")
        .options(**brokers)
        .option("subscribePattern", topic_pattern(plan))
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .option("kafka.fetch.max.wait.ms", FETCH_WAIT_MS)
        .option("maxOffsetsPerTrigger", str(MAX_OFFSETS_PER_BATCH))
        .load()
        .select(*RECORD_COLUMNS)
    )


def topic_pattern(plan: Plan) -> str:
    """Java regular expression of the pipeline's topics but the signals'.

    >>> from types import SimpleNamespace
    >>> topic_pattern(SimpleNamespace(name="shop", signal_topic="shop.cdclake.signal"))
    'shop[.](?!cdclake\\\\.signal$).*'
    """
    rest = plan.signal_topic.removeprefix(f"{plan.name}.")
    return f"{re.escape(plan.name)}[.](?!{re.escape(rest)}$).*"


def start(
    records: DataFrame, batch: Callable[[DataFrame, int], None], plan: Plan, checkpoint: str
) -> StreamingQuery:
    """The running query, under the trigger that the plan's mode asks for."""
    writer = (
        records.writeStream.queryName(f"{plan.name}-{naming.STREAM_JOB}")
        .option("checkpointLocation", checkpoint)
        .foreachBatch(batch)
    )
    if plan.mode == "scheduled":
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{plan.trigger_seconds} seconds").start()


if __name__ == "__main__":
    main()
