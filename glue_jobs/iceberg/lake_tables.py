"""Iceberg tables as the jobs need them: creation, snapshots and stamps, stamped statements.

Reads snapshots through Iceberg's Java API, since one call costs one metadata file where a query of
the metadata tables would be a Spark job.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.errors import TableError
from cdclake.iceberg.ddl import create_table, qualified
from cdclake.iceberg.evolution import evolve_table
from cdclake.iceberg.schemas import TableSchema
from cdclake.jobs.jvm.java import java_with

_CLASSES = (
    "java.lang.Class",
    "java.util.HashMap",
    "org.apache.iceberg.spark.CommitMetadata",
    "org.apache.iceberg.spark.Spark3Util",
)


@dataclass(frozen=True, slots=True)
class StampedSnapshot:
    """A table at one moment: its current snapshot, and the newest stamp at or before it."""

    snapshot_id: int | None
    stamp: str | None
    stamped_at_ms: int | None  # commit time of the snapshot that carries the stamp
    oldest_at_ms: int | None  # commit time of the oldest snapshot that is still in its history


class LakeTables:
    """The tables of one lake database, seen from one Spark session."""

    def __init__(self, spark: SparkSession, database: str) -> None:
        self.spark = spark
        self.database = database
        self._java = java_with(spark, *_CLASSES)

    def qualified(self, table: str) -> str:
        """The table's quoted name in Spark SQL."""
        return qualified(self.database, table)

    def create(self, schema: TableSchema) -> None:
        """Create the table, or give the one that is there the columns and types that it lacks.

        TableError if it cannot become what the schema says.
        """
        self.spark.sql(create_table(self.database, schema))
        fields = self.read(schema.name).schema.fields
        actual = {field.name: field.dataType.simpleString() for field in fields}
        try:
            statements = evolve_table(self.database, schema, actual)
        except ValueError as error:
            raise TableError(
                schema.name,
                str(error),
                "declare the type that it has; or leave the table out of the file, and take it in"
                " again under another `name:`",
            ) from error
        for statement in statements:
            self.spark.sql(statement)

    def completed(self, rows: DataFrame, table: str) -> DataFrame:
        """The rows with NULL in the table's columns that they lack: the dropped ones."""
        lacking = {
            field.name: F.lit(None).cast(field.dataType)
            for field in self.read(table).schema.fields
            if field.name not in rows.columns
        }
        return rows.withColumns(lacking) if lacking else rows

    def read(self, table: str, snapshot_id: int | None = None) -> DataFrame:
        """The table's rows, of one snapshot if one is named."""
        reader = self.spark.read
        if snapshot_id is not None:
            reader = reader.option("snapshot-id", str(snapshot_id))
        return reader.table(self.qualified(table))

    def stamped(self, table: str) -> StampedSnapshot:
        """The table's current snapshot and newest stamp, read now."""
        loaded = self.load(table)
        current = loaded.currentSnapshot()
        if current is None:
            return StampedSnapshot(None, None, None, None)
        oldest = loaded.history().get(0).timestampMillis()
        snapshot = current
        while snapshot is not None:
            stamp = snapshot.summary().get(naming.STAMP_PROPERTY)
            if stamp is not None:
                stamped_at = snapshot.timestampMillis()
                return StampedSnapshot(current.snapshotId(), stamp, stamped_at, oldest)
            parent = snapshot.parentId()
            snapshot = None if parent is None else loaded.snapshot(parent)
        return StampedSnapshot(current.snapshotId(), None, None, oldest)

    def load(self, table: str) -> Any:
        """Iceberg's own Table object."""
        return self._java.Spark3Util.loadIcebergTable(
            self.spark._jsparkSession, self.qualified(table)
        )

    def run_stamped(self, stamp: str, work: Callable[[], None]) -> None:
        """Run `work`, whose commits on this thread carry the stamp in their summaries.

        No session setting stamps a MERGE; Iceberg's CommitMetadata does. Its properties are
        thread-local: `work` must commit on the thread that it is called on.
        """
        properties = self._java.HashMap()
        properties.put(naming.STAMP_PROPERTY, stamp)
        task = _JavaCallable(work)
        thrown = self._java.Class.forName("java.lang.RuntimeException")
        self._java.CommitMetadata.withCommitProperties(properties, task, thrown)
        if task.error is not None:
            raise task.error


class _JavaCallable:
    """A Python function as a java.util.concurrent.Callable; keeps the error as it was."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self.error: Exception | None = None

    def call(self) -> None:
        try:
            self._work()
        except Exception as error:
            self.error = error

    class Java:
        implements = ("java.util.concurrent.Callable",)
