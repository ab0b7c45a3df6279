"""Scan of chosen files of a snapshot: Iceberg plans the files, and Spark reads exactly these."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame

from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.jvm.java import java_with

FILE, ROW = "cdc__file", "cdc__row"  # place of a stored row: data file, and row number in it
Files = Sequence[Any]  # Java list of Iceberg's FileScanTask, including their delete files
_CLASSES = (
    "cdclake.iceberg.Elements",
    "org.apache.iceberg.spark.ScanTaskSetManager",
)


class PlannedScan:
    """Scan of Iceberg's Table object `loaded` at one of its snapshots."""

    def __init__(self, lake: LakeTables, name: str, loaded: Any, snapshot_id: int) -> None:
        self._lake, self._name, self._table, self._snapshot_id = lake, name, loaded, snapshot_id
        self._java = java_with(lake.spark, *_CLASSES)

    def files(self) -> Files:
        """Plan the snapshot's files."""
        planned = self._table.newScan().useSnapshot(self._snapshot_id).planFiles()
        files: Files = self._java.Elements.listOf(planned)
        planned.close()
        return files

    @contextmanager
    def rows_of(self, files: Files, *more: str) -> Iterator[DataFrame]:
        """Read the rows of the files inside the block, with their places `_file` and `_pos`.

        `more` are further metadata columns; `_deleted` includes the deleted rows.
        """
        staged, manager = uuid.uuid4().hex, self._java.ScanTaskSetManager.get()
        manager.stageTasks(self._table, staged, files)
        reader = self._lake.spark.read.option("scan-task-set-id", staged)
        try:
            yield reader.table(self._lake.qualified(self._name)).select("*", "_file", "_pos", *more)
        finally:
            manager.removeTasks(self._table, staged)
