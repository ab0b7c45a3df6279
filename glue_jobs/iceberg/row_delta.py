"""One commit of new rows and of deleted places, staged by Spark and put together here.

Spark commits each statement by itself, and finds what to delete by a join of its own planning.
Iceberg's rewrites stage files through Spark and commit them by its Java API; so does this, by the
same classes, with the checks that Iceberg's own MERGE makes (SparkPositionDeltaWrite). They are not
part of Iceberg's public API: decision 14 says what rests on them.
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

_FORMAT_VERSION = 2  # format 3 has deletion vectors instead of files of positions
_CLASSES = (
    "org.apache.iceberg.TableUtil",
    "org.apache.iceberg.expressions.Expressions",
    "org.apache.iceberg.spark.FileRewriteCoordinator",
    "org.apache.iceberg.spark.SparkSchemaUtil",
)


class RowDelta:
    """A commit in the making, to a table as it is when this is made.

    Whoever commits to the table meanwhile makes it fail (`conflicts.retried` tells how). What was
    staged for a commit that failed stays behind, in no snapshot, for maintenance to remove.
    `add` and `delete` may run side by side.
    """

    def __init__(self, lake: LakeTables, name: str) -> None:
        self._lake, self._name = lake, name
        self._java = java_with(lake.spark, *_CLASSES)
        self._table = lake.load(name)
        current = self._table.currentSnapshot()
        self._read_from = None if current is None else int(current.snapshotId())
        self._delta = self._table.newRowDelta()
        self._one_at_a_time = threading.Lock()  # Iceberg's object minds no threads
        self._columns = self._columns_as_loaded()

    @property
    def is_possible(self) -> bool:
        """Whether the table is of the kind that this writes."""
        version = self._java.TableUtil.formatVersion(self._table)
        return bool(version == _FORMAT_VERSION and self._table.spec().isUnpartitioned())

    @property
    def columns(self) -> list[str]:
        """The table's columns."""
        return [column.name for column in self._columns]

    @property
    def scan(self) -> PrunedScan | None:
        """A scan of the rows that are stored; None if none ever were."""
        if self._read_from is None:
            return None
        return PrunedScan(self._lake, self._name, self._table, self._read_from)

    def add(self, rows: DataFrame) -> None:
        """Have the commit add the rows, a file for each partition; NULL in columns they lack."""
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
        """Have the commit delete the stored rows at these places (`FILE` and `ROW`)."""
        written = DeleteFiles(self._lake, self._table).write(places)
        if written is not None:
            file, data_files = written
            with self._one_at_a_time:
                self._delta.addDeletes(file)
                self._delta.validateDataFilesExist(data_files)

    def commit(self, stamp: str) -> None:
        """Commit what was added and deleted, and the stamp, at once."""
        delta = self._delta.conflictDetectionFilter(self._java.Expressions.alwaysTrue())
        if self._read_from is not None:
            delta = delta.validateFromSnapshot(self._read_from)
        delta = delta.validateDeletedFiles().validateNoConflictingDataFiles()
        delta = delta.validateNoConflictingDeleteFiles()
        delta.set(naming.STAMP_PROPERTY, stamp).commit()

    def _columns_as_loaded(self) -> list[StructField]:
        as_spark = self._java.SparkSchemaUtil.convert(self._table.schema())
        return StructType.fromJson(json.loads(as_spark.json())).fields
