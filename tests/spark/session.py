"""The tests' Spark session: a local driver with an Iceberg catalog in a folder."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parents[2]
_SETTINGS = {
    # What a whole suite compiles stays: Spark's default of 1 GB was full before its end.
    "spark.driver.memory": "4g",
    # A broadcast of a few rows holds a whole page until two collections have passed: pages of
    # Spark's own choice, 64 MB of this heap, filled it faster than it was collected twice.
    "spark.buffer.pageSize": "1m",
    # Spark would keep the plans of a thousand queries, which no test reads.
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Short queries, each new to the JVM: a second compiler would cost more than it gives, as
    # would a collector that works next to them.
    # Without memory it ends and says so: with a thread lost, a test would wait for its timeout.
    "spark.driver.extraJavaOptions": (
        "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
        " -XX:+UseParallelGC"
        " -XX:+ExitOnOutOfMemoryError"
    ),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",  # as the jobs have it; next, too
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.adaptive.enabled": "false",
    # Nor are expressions compiled, a fifth of the CPU; in the tests of whole lakes they are.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.extensions": ("org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"),
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.catalog.lake.cache-enabled": "false",  # as the jobs have it
}


def open_test_session(
    warehouse: str, *, jars: str = "", conf: Mapping[str, str] | None = None
) -> SparkSession:
    """Open the session, with further jars and settings if they are given."""
    os.environ.pop("SPARK_CONF_DIR", None)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2,4]").appName("tests")
    for name, value in {**_settings(warehouse, jars), **(conf or {})}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    # As the jobs begin: started later, beside threads that Java calls already, it may fail.
    ensure_callback_server_started(session.sparkContext._gateway)  # type: ignore[no-untyped-call]
    return session


def _settings(warehouse: str, jars: str) -> dict[str, str]:
    [driver] = (PROJECT / "jars" / "debezium").glob("postgresql-*.jar")
    return {
        **_SETTINGS,
        "spark.driver.extraClassPath": f"{PROJECT}/jars/spark/*:{driver}:{jars}",
        "spark.sql.catalog.lake.warehouse": warehouse,
    }
