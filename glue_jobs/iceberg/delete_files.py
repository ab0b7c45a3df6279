"""Position delete files for the places that a Spark query finds.

Uses the classes that Iceberg itself uses to write them; decision 14 describes the dependency.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.planned_scan import FILE, ROW
from cdclake.jobs.jvm.java import java_with

_CLASSES = (
    "cdclake.iceberg.Elements",
    "java.util.ArrayList",
    "org.apache.iceberg.FileFormat",
    "org.apache.iceberg.FileMetadata",
    "org.apache.iceberg.MetadataColumns",
    "org.apache.iceberg.MetricsConfig",
    "org.apache.iceberg.Schema",
    "org.apache.iceberg.io.OutputFileFactory",
    "org.apache.iceberg.parquet.Parquet",
    "org.apache.iceberg.spark.data.SparkParquetWriters",
    "scala.collection.JavaConverters",
)


class DeleteFiles:
    """Writer of delete files for Iceberg's Table object `loaded`; the caller commits them."""

    def __init__(self, lake: LakeTables, loaded: Any) -> None:
        self._table = loaded
        self._java = java_with(lake.spark, *_CLASSES)

    def write_by_data_file(self, places: DataFrame, data_files: Sequence[Any]) -> Iterator[Any]:
        """Write a delete file for each of the data files; all places must be in one of them.

        Only with such files Iceberg knows how much of a file is deleted. Reads `places` twice.
        """
        counts = {row[FILE]: row["count"] for row in places.groupBy(FILE).count().collect()}
        by_name = {file.location(): file for file in data_files}
        in_order = _in_order(places)
        found = self._java_rows(in_order)
        for name, count in sorted(counts.items()):  # in Spark's order
            of_file = self._java.Elements.next(found, count)
            spec = self._table.specs().get(by_name[name].specId())
            yield self._written(of_file, in_order, spec, by_name[name].partition())

    def _written(self, found: Any, rows: DataFrame, spec: Any, partition: Any) -> Any:
        out, writer = self._open(rows._jdf.schema())
        try:
            writer.addAll(found)
        finally:
            writer.close()
        described = (
            self._java.FileMetadata.deleteFileBuilder(spec)
            .ofPositionDeletes()
            .withEncryptedOutputFile(out)
            .withFormat(self._java.FileFormat.PARQUET)
            .withFileSizeInBytes(writer.length())
            .withMetrics(writer.metrics())
        )
        return described.withPartition(partition).build()

    def _open(self, struct: Any) -> tuple[Any, Any]:
        java, table = self._java, self._table
        names = java.OutputFileFactory.builderFor(table, 0, 0).format(java.FileFormat.PARQUET)
        out = names.operationId(uuid.uuid4().hex).suffix("deletes").build().newOutputFile()
        columns = java.MetadataColumns
        writer = (
            java.Parquet.write(out.encryptingOutputFile())
            .schema(self._schema([columns.DELETE_FILE_PATH, columns.DELETE_FILE_POS]))
            .setAll(table.properties())
            .metricsConfig(java.MetricsConfig.forPositionDelete(table))
            .createWriterFunc(_RowsToParquet(java, struct))
            .build()
        )
        return out, writer

    def _schema(self, fields: Sequence[Any]) -> Any:
        listed = self._java.ArrayList()
        for field in fields:
            listed.add(field)
        return self._java.Schema(listed)

    def _java_rows(self, rows: DataFrame) -> Any:
        """Return a Java iterator over Spark's internal rows; none passes through Python."""
        found = rows._jdf.queryExecution().executedPlan().executeToIterator()
        return self._java.JavaConverters.asJavaIterator(found)


def _in_order(places: DataFrame) -> DataFrame:
    """Put the places into one partition, with the names and order that the format requires."""
    named = places.select(F.col(FILE).alias("file_path"), F.col(ROW).alias("pos"))
    return named.repartition(1).sortWithinPartitions("file_path", "pos")


class _RowsToParquet:
    """java.util.function.Function from a Parquet schema to a writer of Spark's rows."""

    def __init__(self, java: Any, struct: Any) -> None:
        self._java, self._struct = java, struct

    def apply(self, parquet: Any) -> Any:
        return self._java.SparkParquetWriters.buildWriter(self._struct, parquet)

    class Java:
        implements = ("java.util.function.Function",)
