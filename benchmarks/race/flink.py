"""Flink SQL as one process: its client with a cluster in the same JVM."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyspark

from benchmarks.race.flink_sql import script
from benchmarks.session import PROJECT
from cdclake.local.components.installed import environment, java, shell
from cdclake.local.lake.lake import LocalLake, aws_environment

HEAP = "1500m"
JARS = PROJECT / "benchmarks" / "jars" / "flink"
# Flink's own settings for Java 17 open these packages.
_OPENED = (
    *("java.lang", "java.net", "java.io", "java.nio", "sun.nio.ch", "java.lang.reflect"),
    *("java.text", "java.time", "java.util", "java.util.concurrent"),
    *("java.util.concurrent.atomic", "java.util.concurrent.locks"),
)
# Hadoop's client and the logging, which Flink expects to be provided, are in pyspark.
_FROM_PYSPARK = ("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "log4j-")
_LOGGING = """
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
appender.console.name = console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %-5p %c - %m%n
"""


def command(lake: LocalLake, folder: Path) -> list[str]:
    """Write the script and Flink's settings into the folder, and return the command."""
    folder.mkdir(mode=0o700, exist_ok=True)
    sql = folder / "race.sql"  # has the login of Kafka
    sql.touch(mode=0o600)
    sql.write_text(script(lake.plan, lake.kafka, lake.s3, lake.warehouse_uri))
    (folder / "config.yaml").write_text(_settings(lake.plan.trigger_seconds, folder))
    (folder / "log4j2.properties").write_text(_LOGGING)
    return [
        java(lake.home),
        f"-Xmx{HEAP}",
        "-Duser.timezone=UTC",
        f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()}",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        *("-cp", _class_path(), "org.apache.flink.table.client.SqlClient"),
        *("embedded", "-f", str(sql)),
    ]


def variables(lake: LocalLake, folder: Path) -> Mapping[str, str]:
    """Return the environment of the command."""
    aws = aws_environment(lake.endpoints)
    return environment(**shell(), **aws, FLINK_CONF_DIR=str(folder))


def _settings(interval_seconds: int, folder: Path) -> str:
    """Return Flink's settings: a checkpoint, and so a commit, as often as our trigger."""
    return (
        f"execution.target: local\nexecution.checkpointing.interval: {interval_seconds}s\n"
        f"execution.checkpointing.dir: {(folder / 'checkpoints').as_uri()}\n"
        "parallelism.default: 1\ntaskmanager.numberOfTaskSlots: 1\n"
        f"io.tmp.dirs: {folder / 'tmp'}\n"
    )


def _class_path() -> str:
    place = Path(pyspark.__file__).parent / "jars"
    shared = [jar for name in _FROM_PYSPARK for jar in sorted(place.glob(f"{name}*.jar"))]
    [aws] = (PROJECT / "jars" / "spark").glob("iceberg-aws-bundle-*.jar")
    return os.pathsep.join(map(str, [*shared, JARS / "*", aws]))
