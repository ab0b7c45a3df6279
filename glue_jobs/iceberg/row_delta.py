"""One commit of new rows and position deletes, whose files Spark has staged.

Spark commits each statement separately and plans its own join to find the rows to delete. Iceberg's
rewrites stage files through Spark and commit them through its Java API; this module uses the same
classes, with the checks of Iceberg's MERGE (SparkPositionDeltaWrite). They are not part of
Iceberg's public API: decision 14 describes the dependency.
"""

from __future__ import annotations

import json
import threading
import uuid

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from cdclake import naming
from cdclake.jobs.iceberg.delete_files import DeleteFiles
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.pruned_scan import PrunedScan
from cdclake.jobs.jvm.java import each, java_with

_FORMAT_VERSION = 2  # format 3 has deletion vectors instead of delete files
_CLASSES = (
    "org.apache.iceberg.TableUtil",
    "org.apache.iceberg.expressions.Expressions",
    "org.apache.iceberg.spark.FileRewriteCoordinator",
    "org.apache.iceberg.spark.SparkSchemaUtil",
)


class RowDelta:
    """Pending commit to a table, based on its snapshot when this object is created.

    It fails if another writer commits to the table first (see `retry_on_conflict`). Files staged
    for a failed commit become orphans, which maintenance removes. `add` and `delete` may run
    concurrently.
    """

    def __init__(self, lake: LakeTables, name: str) -> None:
        self._lake, self._name = lake, name
        self._java = java_with(lake.spark, *_CLASSES)
        self._table = lake.load(name)
        current = self._table.currentSnapshot()
        self._read_from = None if current is None else int(current.snapshotId())
        self._delta = self._table.newRowDelta()
        self._one_at_a_time = threading.Lock()  # Iceberg's object is not thread-safe
        self._columns = self._columns_as_loaded()

    @property
    def read_from(self) -> int | None:
        """Snapshot that the commit starts from; None for an empty table."""
        return self._read_from

    @property
    def is_possible(self) -> bool:
        """True if this class can write the table: format version 2, unpartitioned."""
        version = self._java.TableUtil.formatVersion(self._table)
        return bool(version == _FORMAT_VERSION and self._table.spec().isUnpartitioned())

    @property
    def columns(self) -> list[str]:
        """Names of the table's columns."""
        return [column.name for column in self._columns]

    @property
    def scan(self) -> PrunedScan | None:
        """Scan of the stored rows; None if the table has no snapshot."""
        if self._read_from is None:
            return None
        return PrunedScan(self._lake, self._name, self._table, self._read_from)

    def add(self, rows: DataFrame) -> None:
        """Stage the rows, one file per partition, with NULL in missing columns."""
        lacking = [column for column in self._columns if column.name not in rows.columns]
        if lacking:
            rows = rows.withColumns({c.name: F.lit(None).cast(c.dataType) for c in lacking})
        staged = uuid.uuid4().hex
        writer = rows.writeTo(self._lake.qualified(self._name))
        writer.option("rewritten-file-scan-task-set-id", staged).append()
        coordinator = self._java.FileRewriteCoordinator.get()
        with self._one_at_a_time:
            for file in each(coordinator.fetchNewFiles(self._table, staged)):
                self._delta.addRows(file)
        coordinator.clearRewrite(self._table, staged)

    def delete(self, places: DataFrame) -> None:
        """Stage deletes of the stored rows at these places (`FILE` and `ROW`)."""
        written = DeleteFiles(self._lake, self._table).write(places)
        if written is not None:
            file, data_files = written
            with self._one_at_a_time:
                self._delta.addDeletes(file)
                self._delta.validateDataFilesExist(data_files)

    def commit(self, stamp: str) -> None:
        """Commit the staged rows and deletes together with the stamp."""
        delta = self._delta.conflictDetectionFilter(self._java.Expressions.alwaysTrue())
        if self._read_from is not None:
            delta = delta.validateFromSnapshot(self._read_from)
        delta = delta.validateDeletedFiles().validateNoConflictingDataFiles()
        delta = delta.validateNoConflictingDeleteFiles()
        delta.set(naming.STAMP_PROPERTY, stamp).commit()

    def _columns_as_loaded(self) -> list[StructField]:
        as_spark = self._java.SparkSchemaUtil.convert(self._table.schema())
        return StructType.fromJson(json.loads(as_spark.json())).fields
