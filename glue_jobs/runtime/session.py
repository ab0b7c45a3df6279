"""The Spark session of a job; catalog settings come from the job's `--conf`, never from here."""

from __future__ import annotations

from py4j.java_gateway import java_import
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

# Named in full, they are found at once. PySpark imports packages: each call of a function would
# look for a class of its name in every package before, and that in every jar.
_LOOKED_UP_BY_NAME = (
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.sql.functions",
)


def open_session(job: str) -> SparkSession:
    """The job's session, in UTC: timestamps of the log are converted under that zone only."""
    spark = SparkSession.builder.appName(job).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name in _LOOKED_UP_BY_NAME:
        java_import(spark.sparkContext._jvm, name)
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    return spark
