"""Target of a Spark task's files: all that it needs of a table, without Iceberg or Spark."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import quote_plus

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from cdclake.jobs.iceberg.data_file import describe_data_file
from cdclake.jobs.iceberg.file_metrics import measure, measured_columns
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.iceberg.parquet_file import arrow_schema, completed, encode

_DAY_ZERO = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class PartitionField:
    """Field of a partition spec; the transform is `day` or `identity`."""

    field_id: int
    name: str
    source: str
    transform: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTarget:
    """Table for whose current schema and spec files are written."""

    schema: str  # Iceberg's JSON
    spec_id: int
    partition_by: Sequence[PartitionField]
    folder: str  # of data files
    full_metrics: frozenset[str]  # columns whose bounds are not truncated
    storage: ObjectStorage

    def write(self, rows: pa.Table) -> str:
        """Write one Parquet file; return its description (`data_file`).

        All rows must belong to one partition of the table. Columns that they lack become NULL. The
        name is unique, so a task that is repeated leaves an orphan and replaces nothing.
        """
        return self._write(rows, {f.field_id: _partition_value(f, rows) for f in self.partition_by})

    def write_empty(self, values: Mapping[str, Any]) -> str:
        """Write a file without rows in the partition of these values, by source column.

        A commit that adds nothing would be an `overwrite`, which ends those who stream the table.
        """
        partition = {f.field_id: _transformed(f, values[f.source]) for f in self.partition_by}
        return self._write(arrow_schema(self.schema).empty_table(), partition)

    def _write(self, rows: pa.Table, partition: Mapping[int, Any]) -> str:
        names = (
            f"{each.name}={_path_part(partition[each.field_id])}" for each in self.partition_by
        )
        path = "/".join((self.folder, *names, f"{_attempt()}-{uuid.uuid4().hex}.parquet"))
        stored = completed(rows, arrow_schema(self.schema))
        content, footer = encode(stored)
        fields = json.loads(self.schema)["fields"]
        metrics = measure(stored, footer, measured_columns(fields, self.full_metrics))
        self.storage.write(path, content)
        return describe_data_file(
            path,
            size=content.size,
            rows=rows.num_rows,
            metrics=metrics,
            spec_id=self.spec_id,
            partition={str(number): value for number, value in partition.items()},
        )


def _partition_value(field: PartitionField, rows: pa.Table) -> Any:
    ends = pc.min_max(rows.column(field.source)).as_py()
    lowest, greatest = (_transformed(field, ends[end]) for end in ("min", "max"))
    if lowest != greatest:
        raise ValueError(f"rows of two partitions in one file: {field.name} {lowest}, {greatest}")
    return lowest


def _transformed(field: PartitionField, value: Any) -> Any:
    if field.transform == "identity":
        return value
    moment: datetime = value
    days = (moment.astimezone(UTC).date() - _DAY_ZERO).days
    return (_DAY_ZERO + timedelta(days=days)).isoformat()


def _path_part(value: Any) -> str:
    return quote_plus(str(value))


def _attempt() -> str:
    context = TaskContext.get()
    return f"{context.partitionId()}-{context.taskAttemptId()}" if context else f"p{os.getpid()}"
