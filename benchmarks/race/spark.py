"""The hand-written Spark stream as one process."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.session import PROJECT
from cdclake.iceberg.catalog_conf import catalog_conf
from cdclake.local.components import jaas
from cdclake.local.components.installed import REGION, environment, jar_folder, java, shell
from cdclake.local.components.kafka import CLIENT_SETTINGS
from cdclake.local.lake.lake import LocalLake, aws_environment
from cdclake.local.lake.spark_jobs import LOG4J2
from cdclake.naming import CATALOG

HEAP = "1500m"
# Ours that are for our own parts: the rest of our settings is as good for others.
_OURS_ALONE = ("io-impl", "cache-enabled")


def command(lake: LocalLake, folder: Path) -> list[str]:
    """Write the program's question into the folder, and return its command."""
    folder.mkdir(exist_ok=True)
    question = {
        "plan": lake.plan.to_json(),
        "checkpoint": (folder / "checkpoint").as_uri(),
        "kafka": {
            "kafka.bootstrap.servers": lake.kafka.address,
            **{f"kafka.{name}": value for name, value in CLIENT_SETTINGS.items()},
        },
        "settings": settings(lake, folder),
    }
    (folder / "question.json").write_text(json.dumps(question))
    words = [sys.executable, "-m", "benchmarks.race.spark_stream"]
    return [*words, str(folder / "question.json")]


def variables(lake: LocalLake, folder: Path) -> Mapping[str, str]:
    """Return the environment of the command."""
    memory = shlex.join(["--driver-memory", HEAP, "pyspark-shell"])
    return environment(
        **shell(),
        **aws_environment(lake.endpoints),
        JAVA_HOME=str(Path(java(lake.home)).parents[1]),
        PYTHONPATH=str(PROJECT),
        PYSPARK_PYTHON=sys.executable,
        PYSPARK_SUBMIT_ARGS=memory,
        SPARK_LOCAL_IP="127.0.0.1",
        SPARK_LOCAL_DIRS=str(folder / "local"),
    )


def settings(lake: LocalLake, folder: Path) -> dict[str, str]:
    """Return a session's settings: two tasks at a time, the lake's catalog, Kafka's login."""
    catalog = f"spark.sql.catalog.{CATALOG}"
    shared = {
        name: value
        for name, value in catalog_conf(lake.warehouse_uri).items()
        if not name.endswith(_OURS_ALONE)
    }
    options = (
        f"-Dlog4j2.configurationFile={LOG4J2.as_uri()}",
        jaas.option(lake.home),
        "-Duser.timezone=UTC",
    )
    return {
        **shared,
        "spark.master": "local[2]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraClassPath": f"{jar_folder('spark')}/*",
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # A batch's changes of a table are few.
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        f"{catalog}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        f"{catalog}.glue.endpoint": lake.glue,
        f"{catalog}.s3.endpoint": lake.s3,
        f"{catalog}.s3.path-style-access": "true",
        f"{catalog}.client.region": REGION,
    }
