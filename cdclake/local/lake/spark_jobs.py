"""Glue jobs on this machine: the same scripts and arguments, started by a local Spark driver.

What Glue gives a job and this does: the script, its arguments, the shared code as one zip, catalog
settings by `--conf`, pyspark and awsglue. What differs: one driver instead of workers, and S3 and
Glue at local endpoints.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdclake import naming
from cdclake.errors import ComponentFailed
from cdclake.iceberg.catalog_conf import catalog_conf
from cdclake.job_package import build_job_package, script_of
from cdclake.local.components import class_archive
from cdclake.local.components.installed import environment, jar_folder, java
from cdclake.local.lake.lake import LocalLake, aws_environment
from cdclake.local.process.orphan_processes import COMPONENT_KEY, HOME_KEY, KEEPER_KEY
from cdclake.local.process.process_spec import Spec
from cdclake.local.process.supervisor_client import log_tail

STREAM = naming.STREAM_COMPONENT
CLASSES = "spark"  # one archive of classes for all jobs
LOG4J2 = Path(__file__).resolve().parent / "log4j2.properties"
_JOB_TIMEOUT_S = 3600.0


def stream_spec(lake: LocalLake) -> Spec:
    """The stream as a process to keep."""
    checkpoint = lake.home.data("checkpoints") / lake.plan.name
    arguments = {
        "checkpoint": checkpoint.as_uri(),
        "brokers": lake.kafka,
    }
    return Spec(
        name=STREAM,
        argv=tuple(_command(lake, naming.STREAM_JOB, arguments)),
        env=_environment(lake, STREAM, memory="1500m"),
        cwd=str(lake.home.run),
        log=str(lake.home.log(STREAM)),
    )


def run_job(lake: LocalLake, job: str, tables: list[str]) -> dict[str, Any]:
    """Run a job over tables to its end; the report that it wrote."""
    running = start_job(lake, job, {"tables": ",".join(tables)} if tables else {})
    try:
        running.process.wait(_JOB_TIMEOUT_S)
    finally:
        running.process.kill()
    return running.report()


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job's process, and the name of its run."""

    lake: LocalLake
    job: str
    run: str
    process: subprocess.Popen[bytes]

    def report(self) -> dict[str, Any]:
        """What the job wrote at its end; ComponentFailed if it ended before."""
        report = self.lake.control.read(naming.report_name(self.run))
        if report is None:
            log = self.lake.home.log(self.job)
            raise ComponentFailed(
                f"the job {self.job} ended with {self.process.wait()} before its report",
                f"read its log {log}",
                component=self.job,
                log_tail=log_tail(log),
            )
        return report.content


def start_job(lake: LocalLake, job: str, arguments: dict[str, str]) -> RunningJob:
    """Start a job with these arguments; its log goes on where it was."""
    run = f"{job}-{uuid.uuid4().hex[:8]}"
    # Of a component that starts a job the job has the keeper, too, and ends with it.
    keeper = {KEEPER_KEY: os.environ[KEEPER_KEY]} if KEEPER_KEY in os.environ else {}
    marks = {HOME_KEY: str(lake.home.path), COMPONENT_KEY: job, **keeper}
    with lake.home.log(job).open("ab") as output:
        process = subprocess.Popen(
            _command(lake, job, {"run": run, **arguments}),
            env={**_environment(lake, job, memory="1g"), **marks},
            cwd=lake.home.run,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    return RunningJob(lake, job, run, process)


def _command(lake: LocalLake, job: str, arguments: dict[str, str]) -> list[str]:
    given = {
        "JOB_NAME": f"{lake.plan.name}-{job}",
        "plan": lake.plan_uri,
        "control": lake.control_uri,
        **arguments,
    }
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    # -P: the script's own folder is not where the jobs' packages come from; the zip is.
    return [sys.executable, "-P", str(script_of(job)), *words]


def _environment(lake: LocalLake, job: str, *, memory: str) -> dict[str, str]:
    conf = {**catalog_conf(lake.warehouse_uri), **_local_conf(lake, job, memory)}
    words = [word for key, value in sorted(conf.items()) for word in ("--conf", f"{key}={value}")]
    return environment(
        **aws_environment(lake.endpoints),
        PYTHONPATH=str(build_job_package()),
        PYSPARK_SUBMIT_ARGS=shlex.join([*words, "pyspark-shell"]),
        PYSPARK_PYTHON=sys.executable,
        SPARK_LOCAL_IP="127.0.0.1",
        SPARK_LOCAL_DIRS=str(lake.home.data("spark")),
    )


def _local_conf(lake: LocalLake, job: str, memory: str) -> dict[str, str]:
    catalog = f"spark.sql.catalog.{naming.CATALOG}"
    classes = class_archive.option(lake.home, CLASSES, java())
    logging = f"-Dlog4j2.configurationFile={LOG4J2.as_uri()}"
    options = [
        logging,
        "-Duser.timezone=UTC",
        "-XX:+ExitOnOutOfMemoryError",
        *_compilers(job),
        classes,
    ]
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": memory,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraClassPath": _class_path(job),
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        f"{catalog}.glue.endpoint": lake.glue,
        f"{catalog}.s3.endpoint": lake.s3,
        f"{catalog}.s3.path-style-access": "true",
        f"{catalog}.client.region": "us-east-1",
    }


def _compilers(job: str) -> list[str]:
    """One of Java's two: on two cores the other costs more in its first minutes than it gives back.

    But to a load, which does the same with millions of rows (measured: five million in 62 seconds
    instead of 83).
    """
    if job == naming.LOAD_JOB:
        return []
    # With one compiler Java reserves 48 MB for its code, which Spark fills within minutes; then it
    # interprets everything, or dies.
    return ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=512m"]


def _class_path(job: str) -> str:
    """What Glue has in itself; for the job that reads the database also the connector's driver."""
    jars = f"{jar_folder('spark')}/*"
    if job != naming.LOAD_JOB:
        return jars
    [driver] = jar_folder("debezium").glob("postgresql-*.jar")
    return f"{jars}:{driver}"


def checkpoint_folder(lake: LocalLake) -> Path:
    """Where the stream's checkpoint is."""
    return lake.home.data("checkpoints") / lake.plan.name
