"""Scan of only those files that may hold given keys, by the files' column statistics.

Iceberg plans the files and then reads exactly these, as in its rewrites. Conditions on the keys in
the query would have the same effect, but Spark compiles literals into the generated classes: each
batch would compile its own and run them cold.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame

from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.jvm.java import java_with

FILE, ROW = "cdc__file", "cdc__row"  # place of a stored row: data file, and row number in it
Bounds = Mapping[str, tuple[Any, Any]]  # column -> least and greatest value
Files = Sequence[Any]  # Java list of Iceberg's FileScanTask, including their delete files
_CLASSES = (
    "org.apache.iceberg.expressions.Expressions",
    "org.apache.iceberg.relocated.com.google.common.collect.Lists",
    "org.apache.iceberg.spark.ScanTaskSetManager",
)


class PrunedScan:
    """Scan of Iceberg's Table object `loaded` at one of its snapshots."""

    def __init__(self, lake: LakeTables, name: str, loaded: Any, snapshot_id: int) -> None:
        self._lake, self._name, self._table, self._snapshot_id = lake, name, loaded, snapshot_id
        self._java = java_with(lake.spark, *_CLASSES)

    def between(self, bounds: Bounds) -> Any:
        """Build a condition for rows whose columns lie within the bounds."""
        expressions = self._java.Expressions
        condition, both = expressions.alwaysTrue(), getattr(expressions, "and")
        for column, (low, high) in bounds.items():
            condition = both(condition, expressions.greaterThanOrEqual(column, low))
            condition = both(condition, expressions.lessThanOrEqual(column, high))
        return condition

    def among(self, column: str, values: Sequence[Any]) -> Any:
        """Build a condition for rows whose column has one of the values."""
        return getattr(self._java.Expressions, "in")(column, list(values))

    def files_with(self, condition: Any) -> Files:
        """Plan the files that may hold a matching row."""
        planned = self._table.newScan().useSnapshot(self._snapshot_id).filter(condition).planFiles()
        files: Files = self._java.Lists.newArrayList(planned)
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
