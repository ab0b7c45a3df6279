"""The rows of those files of a table that may hold some keys, by the statistics of the files.

Iceberg plans the files and is then told to read just these, as its rewrites are. As conditions of
a query the keys would do the same, but Spark compiles literals into the query's classes: each
batch would compile its own and run them cold.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import java_import
from pyspark.sql import DataFrame

from glue_jobs.runtime.tables import LakeTables

Bounds = Mapping[str, tuple[Any, Any]]  # of columns: least and greatest value
Files = Sequence[Any]  # a Java list of Iceberg's FileScanTask, their deletes included
_CLASSES = (
    "expressions.Expressions",
    "relocated.com.google.common.collect.Lists",
    "spark.ScanTaskSetManager",
)


class PrunedScan:
    """A scan of Iceberg's Table object `loaded` at one of its snapshots."""

    def __init__(self, lake: LakeTables, name: str, loaded: Any, snapshot_id: int) -> None:
        self._lake, self._name, self._table, self._snapshot_id = lake, name, loaded, snapshot_id
        self._jvm: Any = lake.spark.sparkContext._jvm
        for needed in _CLASSES:
            java_import(self._jvm, f"org.apache.iceberg.{needed}")

    def between(self, bounds: Bounds) -> Any:
        """A condition for rows whose columns lie between the bounds."""
        jvm = self._jvm
        condition = jvm.Expressions.alwaysTrue()
        for column, (low, high) in bounds.items():
            above = jvm.Expressions.greaterThanOrEqual(column, low)
            condition = getattr(jvm.Expressions, "and")(condition, above)
            below = jvm.Expressions.lessThanOrEqual(column, high)
            condition = getattr(jvm.Expressions, "and")(condition, below)
        return condition

    def among(self, column: str, values: Sequence[Any]) -> Any:
        """A condition for rows whose column has one of the values."""
        return getattr(self._jvm.Expressions, "in")(column, list(values))

    def files_with(self, condition: Any) -> Files:
        """The files that may hold such a row, if any."""
        planned = self._table.newScan().useSnapshot(self._snapshot_id).filter(condition).planFiles()
        files: Files = self._jvm.Lists.newArrayList(planned)
        planned.close()
        return files

    @contextmanager
    def rows_of(self, files: Files, *more: str) -> Iterator[DataFrame]:
        """The rows of some files, with their places `_file` and `_pos`, to be read in the block.

        `more` are further metadata columns; with `_deleted` the deleted rows come, too.
        """
        staged, manager = uuid.uuid4().hex, self._jvm.ScanTaskSetManager.get()
        manager.stageTasks(self._table, staged, files)
        reader = self._lake.spark.read.option("scan-task-set-id", staged)
        try:
            yield reader.table(self._lake.qualified(self._name)).select("*", "_file", "_pos", *more)
        finally:
            manager.removeTasks(self._table, staged)
