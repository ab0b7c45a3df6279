"""The Spark session of a measurement: the same machine, memory and basic settings for everybody."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parents[1]
MEMORY = "3g"
CORES = 2


def open_session(
    jars: str, settings: Mapping[str, str], scratch: Path, master: str = f"local[{CORES}]"
) -> SparkSession:
    """Open a session with the jars of a folder below the project; Java's own compilers, both."""
    os.environ.pop("SPARK_CONF_DIR", None)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    logging = (PROJECT / "cdclake" / "local" / "lake" / "log4j2.properties").as_uri()
    everybody = {
        "spark.driver.memory": MEMORY,
        "spark.driver.extraClassPath": f"{PROJECT / jars}/*",
        "spark.driver.extraJavaOptions": (
            f"-Duser.timezone=UTC -Dlog4j2.configurationFile={logging}"
        ),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "spark-warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # Two cores and small batches: Spark's default of 200 would measure its scheduler.
        "spark.sql.shuffle.partitions": str(CORES),
    }
    builder = SparkSession.builder.master(master).appName("benchmarks")
    for name, value in {**everybody, **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
