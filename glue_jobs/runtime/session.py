"""The Spark session of a job; catalog settings come from the job's `--conf`, never from here."""

from __future__ import annotations

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession


def open_session(job: str) -> SparkSession:
    """The job's session, in UTC: timestamps of the log are converted under that zone only."""
    spark = SparkSession.builder.appName(job).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    return spark
