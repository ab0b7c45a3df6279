"""Spark session of a job; catalog settings come from the job's `--conf`, never from here."""

from __future__ import annotations

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from cdclake.jobs.jvm.java import java_with

# Classes that PySpark itself names for each column of each query.
_MENTIONED_ALWAYS = (
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.sql.functions",
)


def open_session(job: str) -> SparkSession:
    """Open the job's session in UTC, which the conversion of timestamps requires."""
    spark = SparkSession.builder.appName(job).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    java_with(spark, *_MENTIONED_ALWAYS)
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    return spark


def share_among_cores(spark: SparkSession) -> None:
    """Set the number of shuffle partitions to the current number of cores.

    Adaptive execution would coalesce Spark's default of 200, but is disabled inside a streaming
    query's batch: each shuffle of a table would start 200 tasks.
    """
    spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
