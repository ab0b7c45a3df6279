"""Spark as an engine of the comparison: `<t>_current` by the same template as everywhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from cdclake.iceberg.ddl import qualified
from cdclake.iceberg.dialect import SPARK, Dialect
from cdclake.iceberg.views import current_view
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.verify.compared_rows import LakeRows
from cdclake.jobs.verify.engine_rows import EngineRows
from cdclake.naming import current_name
from cdclake.plan import Table


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """The job's Spark session, with temporary views over its catalog."""

    spark: SparkSession
    reader: Reader  # of the stamps
    name: str = "spark"
    dialect: Dialect = SPARK

    def relation(self, table: Table) -> str:
        """Return the name of the table's temporary view."""
        return SPARK.name(current_name(table.name))

    @contextmanager
    def open(self, tables: Collection[Table]) -> Iterator[LakeRows]:
        """Create the views; the stamps are read first, so that none is newer than its state."""
        applied, database = self.reader.applied_now(list(tables)), self.reader.plan.lake_database
        for table in tables:
            select = current_view(
                table,
                state=qualified(database, table.name),
                changes=qualified(database, table.changes),
                applied=applied[table.name],
                dialect=SPARK,
            )
            self.spark.sql(select).createOrReplaceTempView(current_name(table.name))
        try:
            yield EngineRows(self._ask)
        finally:
            for table in tables:
                self.spark.catalog.dropTempView(current_name(table.name))

    def _ask(self, statement: str) -> Iterable[tuple[Any, ...]]:
        return map(tuple, self.spark.sql(statement).toLocalIterator())
