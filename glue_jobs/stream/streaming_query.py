"""The stream as one Spark query: from the pipeline's topics into the micro-batch."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from cdclake import naming
from cdclake.control_objects import PAUSE
from cdclake.debezium.worker import SALT_KEY
from cdclake.erasure_register import ErasureRegister
from cdclake.jobs.apply.view_renewal import ViewRenewal
from cdclake.jobs.control.plan_watcher import PlanWatcher
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.iceberg.catalog_view import CatalogViews
from cdclake.jobs.runtime.arguments import brokers_of
from cdclake.jobs.runtime.metrics import Metrics
from cdclake.jobs.runtime.secrets import secret_value
from cdclake.jobs.runtime.session import open_session
from cdclake.jobs.stream.batch import MicroBatch, RequestedOperations
from cdclake.jobs.stream.checkpoint import discard_unusable
from cdclake.jobs.stream.gauges import StreamGauges
from cdclake.jobs.stream.handover import Handover
from cdclake.jobs.stream.inline_views import InlineViewRenewal
from cdclake.jobs.stream.kafka_range import MAX_POLL_RECORDS, POLL_RECORDS_OPTION, RECORD_COLUMNS
from cdclake.jobs.stream.restarts import Restarts
from cdclake.jobs.stream.topic_check import KafkaTopics
from cdclake.plan import Plan

log = logging.getLogger("cdclake.stream")

# A consumer prefetches, and the broker answers the requests of a connection in order: with Kafka's
# default of 500 ms a batch's offset lookups would wait that long behind the prefetch.
FETCH_WAIT_MS = "20"
MAX_OFFSETS_PER_CORE = 100_000  # in one batch: bounds its duration while a backlog is read
PIECES_PER_CORE = 2  # of a topic's backlog, so that one large table keeps all cores busy

RepairsOf = Callable[[ObjectStore, dict[str, str]], RequestedOperations]


def run_stream(arguments: Mapping[str, str], repairs_of: RepairsOf) -> None:
    """Run the stream until it is stopped (always on) or has read all topics (scheduled).

    While S3, Glue or Kafka fail, the query starts again after a pause, as a new process would. A
    paused stream publishes its metrics before it ends: the freshness alarm notices a long pause.
    """
    control = ObjectStore(arguments["control"])
    if control.read(PAUSE) is not None:
        log.warning("the stream is paused: `cdclake resume` lets it run again")
        plan = PlanWatcher(arguments["plan"]).read()
        _gauges(control, arguments, plan).publish(None)
        return
    spark = open_session(arguments["JOB_NAME"])
    restarts = Restarts()
    restarts.run(lambda: _run_query(arguments, spark, repairs_of, restarts))


def _run_query(
    arguments: Mapping[str, str], spark: SparkSession, repairs_of: RepairsOf, restarts: Restarts
) -> None:
    control = ObjectStore(arguments["control"])
    plans = PlanWatcher(arguments["plan"], control)
    plan = plans.read()
    brokers = brokers_of(arguments)
    handover = Handover(control, arguments.get("deployment"))
    repairs = repairs_of(control, brokers)
    topics = KafkaTopics(spark, brokers)
    views = InlineViewRenewal(ViewRenewal(CatalogViews()))
    erasures = _erasures(control, arguments)
    micro_batch = MicroBatch(plans, control, brokers, repairs, topics, views, erasures)
    batch = handover.guarded(restarts.observed(micro_batch))
    discard_unusable(spark, arguments["checkpoint"], topics)
    query = start(read_topics(spark, plan, brokers), batch, plan, arguments["checkpoint"])
    publish_until_end(query, handover, _gauges(control, arguments, plan))


def publish_until_end(query: StreamingQuery, handover: Handover, gauges: StreamGauges) -> None:
    """Publish metrics until the query ends, and then once more; raise the query's error."""
    try:
        handover.await_end(query, lambda: gauges.publish_if_due(query.lastProgress))
    except Exception:
        # The batches since the last publication; no batch may have ended, nor Spark answer.
        gauges.publish(None, is_end=False)
        raise
    gauges.publish(query.lastProgress)  # in scheduled mode perhaps the first time


def _erasures(control: ObjectStore, arguments: Mapping[str, str]) -> ErasureRegister | None:
    """Return the register of erased keys; only a stream that is given the salt has one."""
    name = arguments.get("mask_salt")
    return None if name is None else ErasureRegister(control, lambda: secret_value(name, SALT_KEY))


def _gauges(control: ObjectStore, arguments: Mapping[str, str], plan: Plan) -> StreamGauges:
    deployment, is_scheduled = arguments.get("metrics"), plan.mode == "scheduled"
    tables_of = deployment if arguments.get("table_metrics") == "true" else None
    return StreamGauges(control, Metrics(deployment), tables_of, is_scheduled=is_scheduled)


def read_topics(spark: SparkSession, plan: Plan, brokers: dict[str, str]) -> DataFrame:
    """Read the records of every topic of the pipeline, including topics added later.

    Subscribes by pattern, since a checkpoint does not accept a changed list of topics. A lost
    offset fails the query: events must never be skipped silently.
    """
    cores = spark.sparkContext.defaultParallelism
    return (
        spark.readStream.format("kafka")
        .options(**brokers)
        .option("subscribePattern", topic_pattern(plan))
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .option("kafka.fetch.max.wait.ms", FETCH_WAIT_MS)
        .option(POLL_RECORDS_OPTION, str(MAX_POLL_RECORDS))
        .option("maxOffsetsPerTrigger", str(MAX_OFFSETS_PER_CORE * cores))
        .option("minPartitions", str(len(plan.topics) + PIECES_PER_CORE * cores))
        .load()
        .select(*RECORD_COLUMNS)
    )


def topic_pattern(plan: Plan) -> str:
    r"""Return the Java regular expression of the pipeline's topics except the signal topic.

    >>> from types import SimpleNamespace
    >>> topic_pattern(SimpleNamespace(name="shop", signal_topic="shop.cdclake.signal"))
    'shop[.](?!cdclake\\.signal$).*'
    """
    rest = plan.signal_topic.removeprefix(f"{plan.name}.")
    return f"{re.escape(plan.name)}[.](?!{re.escape(rest)}$).*"


def start(
    records: DataFrame, batch: Callable[[DataFrame, int], None], plan: Plan, checkpoint: str
) -> StreamingQuery:
    """Start the query with the trigger of the plan's mode."""
    writer = (
        records.writeStream.queryName(f"{plan.name}-{naming.STREAM_JOB}")
        .option("checkpointLocation", checkpoint)
        .foreachBatch(batch)
    )
    if plan.mode == "scheduled":
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{plan.trigger_seconds} seconds").start()
