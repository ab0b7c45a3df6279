"""Glue jobs on this machine: the same scripts and arguments, run by a local Spark driver.

As in Glue, a job gets its script, arguments, the shared code as one zip, catalog settings through
`--conf`, pyspark and awsglue. Differences: one driver instead of workers, and local endpoints of S3
and Glue.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from cdclake import naming
from cdclake.activity import Advance, Sampler, Step, step
from cdclake.errors import ComponentFailed
from cdclake.fail_points import FAIL_POINT_KEY
from cdclake.hudi_copy import HUDI_CONF
from cdclake.iceberg.catalog_conf import catalog_conf
from cdclake.job_advance import JobAdvance
from cdclake.job_package import build_job_package, script_of
from cdclake.local.components import class_archive, jaas
from cdclake.local.components.installed import REGION, environment, jar_folder, java, shell
from cdclake.local.components.kafka import CLIENT_SETTINGS
from cdclake.local.lake.lake import LocalLake, aws_environment, without_password
from cdclake.local.lake.no_answer import answer_or_unknown
from cdclake.local.lake.temporary_files import (
    LOCAL_DIRS_KEY,
    remove_temporary_files,
    temporary_files,
)
from cdclake.local.process.child_process import dying_with, rotate
from cdclake.local.process.orphan_processes import COMPONENT_KEY, HOME_KEY, KEEPER_KEY
from cdclake.local.process.process_spec import Spec
from cdclake.local.process.supervisor_client import log_tail

STREAM = naming.STREAM_COMPONENT
CLASSES = "spark"  # one archive of classes for all jobs
LOG4J2 = Path(__file__).resolve().parent / "log4j2.properties"
# Without the password, which the JVM finds in the JAAS file.
KAFKA_OPTIONS = {f"kafka.{name}": value for name, value in CLIENT_SETTINGS.items()}
# The local Firehose buffers decoded rows for 10 s at most; the rest is for retries of their append.
_DELIVERY_S = "30"
_SHOWN_EVERY_S = 2.0
# On two cores Java's second compiler costs more in a job's first minutes than it saves. With one
# compiler Java reserves 48 MB for compiled code. Spark fills that within minutes, and then Java
# interprets everything, or dies.
_ONE_COMPILER = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=512m")


def stream_spec(lake: LocalLake) -> Spec:
    """Return the stream as a process for the supervisor."""
    arguments = {
        "checkpoint": checkpoint_uri(lake),
        "brokers": lake.kafka.address,
        "kafka_options": json.dumps(KAFKA_OPTIONS),
        "mask_salt": naming.salt_secret(lake.plan.name),
    }
    return Spec(
        name=STREAM,
        argv=tuple(_command(lake, naming.STREAM_JOB, arguments)),
        env=_environment(lake, STREAM, memory="1500m", s3a=False),
        shell=shell(),
        cwd=str(lake.home.run),
        log=str(lake.home.log(STREAM)),
    )


def run_job(lake: LocalLake, job: str, tables: list[str], **arguments: str) -> dict[str, Any]:
    """Run a job over tables, wait until it ends, and return its report."""
    running = start_over(lake, job, tables, **arguments)
    try:
        with step(f"run {job}") as shown:
            running.wait(shown)
    finally:
        running.process.kill()
    return running.report()


def start_over(lake: LocalLake, job: str, tables: list[str], **arguments: str) -> RunningJob:
    """Start a job over tables with the arguments that it needs here."""
    chosen = {"tables": ",".join(tables)} if tables else {}
    more = _source_arguments(lake) if job in (naming.POLL_JOB, naming.VERIFY_JOB) else {}
    if job in (naming.APPLY_JOB, naming.REBUILD_JOB):
        more = {
            "mask_salt": naming.salt_secret(lake.plan.name),
            "delivery_seconds": _DELIVERY_S,
        }
    if job == naming.VERIFY_JOB:
        more |= {"brokers": lake.kafka.address, "kafka_options": json.dumps(KAFKA_OPTIONS)}
    return start_job(lake, job, chosen | more | arguments)


def _source_arguments(lake: LocalLake) -> dict[str, str]:
    """Return the arguments of a job that queries the source: its address, and names of secrets."""
    shown, _ = without_password(lake.dsn)
    parts = psycopg.conninfo.conninfo_to_dict(shown)
    words = {name: value for name, value in parts.items() if name != "user"}
    return {
        "source": json.dumps(words, sort_keys=True),
        "login": naming.login_secret(lake.plan.name),
        "mask_salt": naming.salt_secret(lake.plan.name),
    }


@dataclass(frozen=True, slots=True)
class RunningJob:
    """Process of a job, and the name of its run."""

    lake: LocalLake
    job: str
    run: str
    process: subprocess.Popen[bytes]

    def wait(self, shown: Step) -> None:
        """Wait until the job ends, however long, and note its progress in the step."""
        sampler = Sampler(shown, self._advance, _SHOWN_EVERY_S)
        while True:
            try:
                self.process.wait(_SHOWN_EVERY_S)
                return
            except subprocess.TimeoutExpired:
                sampler.sample()

    def _advance(self) -> Advance | None:
        stored = answer_or_unknown(
            lambda: self.lake.control.read(naming.advance_name(self.run)), None
        )
        return None if stored is None else JobAdvance.shown(stored.content)

    def report(self) -> dict[str, Any]:
        """Return the report of the ended job and delete it; ComponentFailed if it wrote none."""
        report = self.lake.control.read(naming.report_name(self.run))
        # Each run has its own, and the local S3 holds all names in memory.
        for name in (naming.advance_name(self.run), naming.report_name(self.run)):
            self.lake.control.delete(name)
        if report is None:
            log = self.lake.home.log(self.job)
            raise ComponentFailed(
                f"the job {self.job} ended with exit code {self.process.wait()} and no report",
                f"read its log {log}",
                component=self.job,
                log_tail=log_tail(log),
            )
        return report.content


def start_job(lake: LocalLake, job: str, arguments: dict[str, str]) -> RunningJob:
    """Start a job with these arguments, which ends with this process; append to its log."""
    run = f"{job}-{uuid.uuid4().hex[:8]}"
    # A job that a component starts inherits the component's keeper, and so ends with it.
    keeper = {KEEPER_KEY: os.environ[KEEPER_KEY]} if KEEPER_KEY in os.environ else {}
    marks = {HOME_KEY: str(lake.home.path), COMPONENT_KEY: job, **keeper}
    s3a = job == naming.PUBLISH_JOB or arguments.get("checkpoint", "").startswith("s3://")
    remove_temporary_files(lake.home)
    rotate(lake.home.log(job))
    with lake.home.log(job).open("ab") as output:
        process = subprocess.Popen(
            _command(lake, job, {"run": run, **arguments}),
            env={**shell(), **_environment(lake, job, memory="1g", s3a=s3a), **marks},
            cwd=lake.home.run,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            umask=0o077,
            preexec_fn=dying_with(os.getpid(), signal.SIGKILL),
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
    # -P: the jobs' packages come from the zip, not from the script's folder.
    return [sys.executable, "-P", str(script_of(job)), *words]


def _environment(lake: LocalLake, job: str, *, memory: str, s3a: bool) -> dict[str, str]:
    """Return the environment of a job; with `s3a` Hadoop can use files of the local S3."""
    conf = {**catalog_conf(lake.warehouse_uri), **_local_conf(lake, job, memory, s3a=s3a)}
    armed = {FAIL_POINT_KEY: os.environ[FAIL_POINT_KEY]} if FAIL_POINT_KEY in os.environ else {}
    words = [word for key, value in sorted(conf.items()) for word in ("--conf", f"{key}={value}")]
    return environment(
        **aws_environment(lake.endpoints),
        **armed,
        JAVA_HOME=str(Path(java(lake.home)).parents[1]),
        PYTHONPATH=str(build_job_package()),
        PYSPARK_SUBMIT_ARGS=shlex.join([*words, "pyspark-shell"]),
        PYSPARK_PYTHON=sys.executable,
        SPARK_LOCAL_IP="127.0.0.1",
        **{LOCAL_DIRS_KEY: str(temporary_files(lake.home, job))},
    )


def _local_conf(lake: LocalLake, job: str, memory: str, *, s3a: bool) -> dict[str, str]:
    catalog = f"spark.sql.catalog.{naming.CATALOG}"
    classes = class_archive.option(lake.home, CLASSES, java(lake.home))
    logging = f"-Dlog4j2.configurationFile={LOG4J2.as_uri()}"
    options = [
        logging,
        jaas.option(lake.home),
        "-Duser.timezone=UTC",
        "-XX:+ExitOnOutOfMemoryError",
        *_ONE_COMPILER,
        classes,
    ]
    return {
        "spark.master": "local[2,4]",  # two tasks at once, four attempts each, as on a cluster
        "spark.driver.memory": memory,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraClassPath": _class_path(job, s3a=s3a),
        "spark.driver.extraJavaOptions": shlex.join(options),  # Spark splits it as a shell does
        # The driver listens, on 127.0.0.1; a local master makes the secret itself.
        "spark.authenticate": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        f"{catalog}.glue.endpoint": lake.glue,
        f"{catalog}.s3.endpoint": lake.s3,
        f"{catalog}.s3.path-style-access": "true",
        f"{catalog}.client.region": REGION,
        **(HUDI_CONF if job == naming.PUBLISH_JOB else {}),
        **(_s3a_conf(lake) if s3a else {}),
    }


def _s3a_conf(lake: LocalLake) -> dict[str, str]:
    """Return the settings of Hadoop's client of S3, which Glue has for `s3://`."""
    files = "spark.hadoop.fs.s3a"
    return {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        f"{files}.endpoint": lake.s3,
        f"{files}.endpoint.region": REGION,
        f"{files}.path.style.access": "true",
        f"{files}.aws.credentials.provider": (
            "com.amazonaws.auth.EnvironmentVariableCredentialsProvider"
        ),
    }


def _class_path(job: str, *, s3a: bool) -> str:
    """Return the jars that Glue includes, and those that only this job needs.

    Hadoop's client of S3 is next to Hudi's jars. The bulk load needs the connector's JDBC driver.
    """
    jars = f"{jar_folder('spark')}/*"
    if s3a:
        return f"{jars}:{jar_folder('hudi')}/*"
    if job != naming.LOAD_JOB:
        return jars
    [driver] = jar_folder("debezium").glob("postgresql-*.jar")
    return f"{jars}:{driver}"


def checkpoint_folder(lake: LocalLake) -> Path:
    """Return the folder of the stream's checkpoint."""
    return lake.home.data("checkpoints") / lake.plan.name


def checkpoint_uri(lake: LocalLake) -> str:
    """Return the URI of the checkpoint, unescaped: Hadoop would take `%20` for part of a name."""
    return f"file://{checkpoint_folder(lake)}"
