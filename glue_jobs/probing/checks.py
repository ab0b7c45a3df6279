"""Checks that only the place where the jobs will run can answer, each with its remedy."""

from __future__ import annotations

import importlib
import platform
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import botocore
import pyspark
from botocore.exceptions import BotoCoreError, ClientError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.check import Check, failed, passed
from cdclake.control_objects import PROBES
from cdclake.errors import CdcError, ComponentFailed
from cdclake.iceberg.schemas import TableSchema
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.jvm.java import java_with
from cdclake.jobs.jvm.members import MEMBERS
from cdclake.jobs.probing.java_members import missing_members

# Packages that the jobs import, in the driver and in tasks: wheels of the deployment, and pandas.
PACKAGES = (
    "adbc_driver_postgresql",
    "duckdb",
    "fastavro",
    "mmh3",
    "msgspec",
    "pandas",
    "psycopg",
    "pyarrow",
)
_FORMAT = {"format-version": "2"}
_ICEBERG = "org.apache.iceberg.IcebergBuild"
_REASONS = (CdcError, Py4JError, PySparkException, ClientError, BotoCoreError, ImportError)


def probe(
    spark: SparkSession, *, database: str, control: ObjectStore, checkpoint: str
) -> list[Check]:
    """Return the result of every check; one that fails does not keep the others from running."""
    checks: tuple[tuple[str, str, Callable[[], str]], ...] = (
        ("versions", "use the Glue version of the job's template", lambda: versions(spark)),
        ("java", "choose a Glue version whose Iceberg has them", lambda: java_members(spark)),
        ("packages", "see the wheels in the job's arguments", packages),
        ("tasks", "see the wheels in the job's arguments", lambda: packages_in_tasks(spark)),
        (
            "checkpoint",
            "see the role's statements for the checkpoints",
            lambda: checkpoint_folder(spark, f"{checkpoint}-{uuid.uuid4().hex}"),
        ),
        (
            "conditional writes",
            "see the role's statements for control objects",
            lambda: conditional_writes(control),
        ),
        (
            "tables",
            "see the role's statements for the catalog and the warehouse; in an account that uses"
            " Lake Formation set `lake_formation: true`",
            lambda: table_commit(LakeTables(spark, database)),
        ),
    )
    return [found for name, remedy, check in checks for found in _result(name, remedy, check)]


def _result(name: str, remedy: str, check: Callable[[], str]) -> Iterable[Check]:
    try:
        yield passed(name, check())
    except _REASONS as error:
        yield failed(name, f"{type(error).__name__}: {_first_line(error)}", remedy)


def _first_line(error: Exception) -> str:
    cause = getattr(error, "java_exception", None)
    return str(cause.toString() if cause is not None else error).strip().partition("\n")[0]


def versions(spark: SparkSession) -> str:
    """Return the versions of what the jobs run on."""
    jvm: Any = spark.sparkContext._jvm
    java = jvm.java.lang.System.getProperty("java.version")
    build = getattr(java_with(spark, _ICEBERG), _ICEBERG.rpartition(".")[2])
    return (
        f"Java {java}, Spark {pyspark.__version__}, Iceberg {build.version()},"
        f" Python {platform.python_version()}, botocore {botocore.__version__}"
    )


def java_members(spark: SparkSession) -> str:
    """Check that every class and member of the jobs' list exists."""
    missing = list(missing_members(spark, MEMBERS))
    if missing:
        raise ComponentFailed(f"missing: {', '.join(missing)}")
    return f"{len(MEMBERS)} classes, {sum(map(len, MEMBERS.values()))} members"


def packages() -> str:
    """Import the packages in the driver; return their versions."""
    return ", ".join(_versions(PACKAGES))


def packages_in_tasks(spark: SparkSession) -> str:
    """Import the packages in a task, through Arrow, as the stream's tasks do."""
    names = PACKAGES

    def found(batches: Iterable[Any]) -> Iterable[Any]:
        import pyarrow

        for _ in batches:
            pass
        yield pyarrow.RecordBatch.from_pydict({"found": list(_versions(names))})

    rows = spark.range(1, numPartitions=1).mapInArrow(found, "found string").collect()
    return ", ".join(row["found"] for row in rows)


def _versions(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        module = importlib.import_module(name)
        yield f"{name} {module.__version__}" if hasattr(module, "__version__") else name


def checkpoint_folder(spark: SparkSession, uri: str) -> str:
    """Make, fill, list and remove a folder as Spark does with a checkpoint."""
    java = java_with(spark, "org.apache.hadoop.fs.Path")
    root = java.Path(uri)
    files = root.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    files.mkdirs(root)
    first, second = java.Path(root, "offsets/.0.tmp"), java.Path(root, "offsets/0")
    with_content = files.create(first)
    with_content.write(b"v1")
    with_content.close()
    if not files.rename(first, second) or len(files.listStatus(java.Path(root, "offsets"))) != 1:
        raise ComponentFailed(
            f"a file below {uri} could not be renamed", component=naming.PROBE_JOB
        )
    files.delete(root, True)
    if files.exists(root):
        raise ComponentFailed(f"{uri} could not be removed")
    return f"{files.getClass().getName()} for {uri.rpartition('/')[0]}"


def conditional_writes(control: ObjectStore) -> str:
    """Check that S3 refuses a write whose condition does not hold: leases depend on it."""
    name = f"{PROBES}/{uuid.uuid4().hex}.json"
    try:
        first = control.write_if(name, {"probe": 1}, None)
        again = control.write_if(name, {"probe": 2}, None)
        renewed = control.write_if(name, {"probe": 3}, first)
        stale = control.write_if(name, {"probe": 4}, first)
    finally:
        control.delete(name)
    if not (first and renewed) or again or stale:
        raise ComponentFailed(
            "S3 accepted a write whose condition does not hold", component=naming.PROBE_JOB
        )
    return "If-None-Match and If-Match are honoured"


def table_commit(lake: LakeTables) -> str:
    """Create a table, commit a row with a stamp, read both, and drop the table."""
    name = f"{naming.PROBE_TABLE}{uuid.uuid4().hex}"
    table = lake.qualified(name)

    def insert() -> None:
        lake.spark.sql(f"INSERT INTO {table} VALUES (1)")

    lake.create(TableSchema(name=name, columns=(("id", "int"),), properties=_FORMAT))
    try:
        lake.run_stamped("probe", insert)
        stamp = lake.stamped(name).stamp
        rows = lake.read(name).count()
        if (rows, stamp) != (1, "probe"):
            raise ComponentFailed(
                f"{rows} rows and the stamp {stamp} after one commit", component=naming.PROBE_JOB
            )
    finally:
        lake.spark.sql(f"DROP TABLE {table} PURGE")
    return f"{table} committed, read and dropped"
