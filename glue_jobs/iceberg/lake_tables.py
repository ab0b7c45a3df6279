"""Iceberg tables of the lake: creation, snapshots, stamps, and statements with a stamp.

Reads snapshots through Iceberg's Java API: a call reads one metadata file, whereas a query of the
metadata tables would be a Spark job.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, DataFrameWriterV2, SparkSession
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.errors import APPLY_FILE, TableError
from cdclake.iceberg.ddl import create_table, qualified
from cdclake.iceberg.evolution import evolve_table
from cdclake.iceberg.schemas import DERIVED_PROPERTY, KEY_PROPERTY, TableSchema
from cdclake.jobs.jvm.java import java_with

_CLASSES = (
    "java.lang.Class",
    "java.util.HashMap",
    "org.apache.iceberg.spark.CommitMetadata",
    "org.apache.iceberg.spark.Spark3Util",
)


@dataclass(frozen=True, slots=True)
class StampedSnapshot:
    """Current snapshot of a table, and the newest stamp at or before it."""

    snapshot_id: int | None
    stamp: str | None
    stamped_at_ms: int | None  # commit time of the snapshot that carries the stamp
    oldest_at_ms: int | None  # commit time of the oldest snapshot in its history
    is_current: bool = False  # the current snapshot carries the stamp


class LakeTables:
    """Tables of one lake database in one Spark session."""

    def __init__(self, spark: SparkSession, database: str) -> None:
        self.spark = spark
        self.database = database
        self._java = java_with(spark, *_CLASSES)

    def qualified(self, table: str) -> str:
        """Return the table's quoted name in Spark SQL."""
        return qualified(self.database, table)

    def create(self, schema: TableSchema) -> None:
        """Create the table, or evolve an existing one to the schema.

        Raises TableError if it cannot be evolved, or is a derived table or one of other rows.
        """
        self.create_missing(schema)
        stored = self.load(schema.name).properties()
        _check_properties(schema.name, stored, schema.properties.get(KEY_PROPERTY, ""))
        fields = self.read(schema.name).schema.fields
        actual = {field.name: field.dataType.simpleString() for field in fields}
        _check_positions(schema, actual)
        try:
            statements = evolve_table(self.database, schema, actual)
        except ValueError as error:
            raise TableError(
                schema.name,
                str(error),
                "declare its existing type; or, if the source has the new type, remove the column"
                f" from the file, {APPLY_FILE}, resume the table and let it read what was sent"
                " before, then add the column again",
            ) from error
        for statement in statements:
            self.spark.sql(statement)

    def create_missing(self, schema: TableSchema) -> None:
        """Create the table; leave an existing one as it is."""
        self.spark.sql(create_table(self.database, schema))

    def check_key(self, state: str, declared: str) -> None:
        """Raise TableError for a state with another key than `declared`: its rows would be doubled.

        `declared` has the key's columns with commas between them, in the order of the state's:
        hashes of erased rows depend on it. A state that an earlier version created does not have
        its key, and passes. A derived table is no state.
        """
        _check_properties(state, self.load(state).properties(), declared)

    def completed(self, rows: DataFrame, table: str) -> DataFrame:
        """Add the table's columns that the rows lack (dropped ones), with NULL."""
        lacking = {
            field.name: F.lit(None).cast(field.dataType)
            for field in self.read(table).schema.fields
            if field.name not in rows.columns
        }
        return rows.withColumns(lacking) if lacking else rows

    def read(self, table: str, snapshot_id: int | None = None) -> DataFrame:
        """Read the table, at the given snapshot if there is one."""
        reader = self.spark.read
        if snapshot_id is not None:
            reader = reader.option("snapshot-id", str(snapshot_id))
        return reader.table(self.qualified(table))

    def stamped(self, table: str) -> StampedSnapshot:
        """Load the table's current snapshot and its newest stamp."""
        return stamped_snapshot(self.load(table))

    def exists(self, table: str) -> bool:
        """Check whether the catalog has the table."""
        return bool(self.spark.catalog.tableExists(self.qualified(table)))

    def properties(self, table: str) -> Mapping[str, str] | None:
        """Return the table's properties; None if the catalog does not have it."""
        return self.load(table).properties() if self.exists(table) else None

    def load(self, table: str) -> Any:
        """Load the table as Iceberg's Table object."""
        return self._java.Spark3Util.loadIcebergTable(
            self.spark._jsparkSession, self.qualified(table)
        )

    def run_stamped(self, stamp: str, work: Callable[[], None]) -> None:
        """Run `work`; its commits on this thread carry the stamp in their summaries.

        No session setting adds the stamp to a MERGE, but Iceberg's CommitMetadata does. Its
        properties are thread-local: `work` must commit on the calling thread.
        """
        properties = self._java.HashMap()
        properties.put(naming.STAMP_PROPERTY, stamp)
        task = _JavaCallable(work)
        thrown = self._java.Class.forName("java.lang.RuntimeException")
        self._java.CommitMetadata.withCommitProperties(properties, task, thrown)
        if task.error is not None:
            raise task.error


def overwrite(writer: DataFrameWriterV2, condition: Column, *, read_from: int | None) -> None:
    """Replace the rows that fulfil the condition, in one commit.

    Iceberg refuses it if another writer has changed such rows since the snapshot `read_from`, or at
    any time if that is None: the table was read while it had no snapshot.
    """
    writer = writer.option("isolation-level", "serializable")
    if read_from is not None:
        writer = writer.option("validate-from-snapshot-id", str(read_from))
    writer.overwrite(condition)


def stamped_snapshot(table: Any) -> StampedSnapshot:
    """Return the current snapshot and its newest stamp of Iceberg's Table object."""
    current = table.currentSnapshot()
    if current is None:
        return StampedSnapshot(None, None, None, None)
    oldest = table.history().get(0).timestampMillis()
    snapshot = current
    while snapshot is not None:
        stamp = snapshot.summary().get(naming.STAMP_PROPERTY)
        if stamp is not None:
            stamped_at = snapshot.timestampMillis()
            newest = current.snapshotId()
            is_current = snapshot.snapshotId() == newest
            return StampedSnapshot(newest, stamp, stamped_at, oldest, is_current)
        parent = snapshot.parentId()
        snapshot = None if parent is None else table.snapshot(parent)
    return StampedSnapshot(current.snapshotId(), None, None, oldest)


def _check_properties(table: str, stored: Mapping[str, str], declared: str) -> None:
    """Raise TableError for a table that cannot go on with the declared key; "" is that of none."""
    if DERIVED_PROPERTY in stored:
        raise TableError(
            table,
            "the lake has a derived table of this name, whose rows would be mixed with its own",
            "declare the table under another `name:`, or drop the derived table",
        )
    key = stored.get(KEY_PROPERTY)
    if key and declared and key != declared:
        raise TableError(
            table,
            f"its key is {key} and cannot become {declared}",
            "declare its existing key, in that order; or remove the table from the file, then add"
            " it again under another `name:`",
        )


def _check_positions(schema: TableSchema, actual: Collection[str]) -> None:
    """Raise TableError for a table without positions: Firehose appends other records to it."""
    if naming.POSITION in dict(schema.columns) and naming.POSITION not in actual:
        raise TableError(
            schema.name,
            f"the lake has a table of this name that has no {naming.POSITION}, such as one of"
            " `puts:` or `weblogs:`, whose rows would be mixed with its own",
            "declare the table under another `name:`, or drop the other table",
        )


class _JavaCallable:
    """java.util.concurrent.Callable around a Python function; keeps its exception."""

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
