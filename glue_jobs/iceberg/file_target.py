"""Target of a Spark task's files: all that it needs of a table, without Iceberg or Spark."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext

from cdclake.jobs.iceberg.data_file import LiveFile, as_deletes, describe_data_file
from cdclake.jobs.iceberg.file_metrics import MeasuredColumn, measure, measured_columns
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.iceberg.parquet_file import (
    DELETE_FILE_PATH,
    DELETE_POS,
    PATH_ID,
    POS_ID,
    arrow_schema,
    completed,
    delete_schema,
    encode,
)
from cdclake.jobs.iceberg.partition_values import (
    PartitionField,
    of_values,
    partition_of,
    partitions,
)
from cdclake.jobs.iceberg.row_selection import RowNumbers

Rows = npt.NDArray[np.int64]
_MAX_FOLDER_NAME, _MAX_FOLDER_NAMES = 200, 600  # characters of one, and of a file's; S3: 1,024
_DELETE_COLUMNS = (
    MeasuredColumn(PATH_ID, DELETE_FILE_PATH, "string", is_full=True),
    MeasuredColumn(POS_ID, DELETE_POS, "long", is_full=True),
)


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
        stored = self._completed(rows)
        return self._write(stored, partition_of(stored, self.partition_by))

    def write_partitions(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Write one file for each partition of the rows; yield descriptions and their rows.

        Columns that the rows lack become NULL, partition columns as well. Only one partition's
        rows are copied at a time. A column of texts has at most 2 GiB.
        """
        stored = self._completed(rows)
        for partition, numbers in partitions(stored, self.partition_by):
            part = RowNumbers(numbers, stored.num_rows).take(stored)
            yield self._write(part, partition), part

    def write_deletes(self, places: Mapping[str, Rows], like: LiveFile) -> str:
        """Write one file of position deletes; return its description.

        `places` are row numbers by data file. All files have the spec and partition of `like`.
        """
        paths = sorted(places)
        counts = [len(places[path]) for path in paths]
        names = pa.array(np.repeat(np.asarray(paths, object), counts), pa.string())
        numbers = np.concatenate([np.sort(places[path]) for path in paths])
        rows = pa.table([names, pa.array(numbers, pa.int64())], schema=delete_schema())
        path = f"{self.folder}/{_attempt()}-{uuid.uuid4().hex}-deletes.parquet"
        content, footer = encode(rows)
        self.storage.write(path, content)
        described = describe_data_file(
            path,
            size=content.size,
            rows=rows.num_rows,
            metrics=measure(rows, footer, _DELETE_COLUMNS),
            spec_id=like.spec_id,
            partition=like.partition,
        )
        return as_deletes(described, paths[0] if len(paths) == 1 else None)

    def write_empty(self, values: Mapping[str, Any]) -> str:
        """Write a file without rows in the partition of these values, by source column.

        A commit that adds nothing would be an `overwrite`, which ends those who stream the table.
        """
        partition = of_values(self.partition_by, values)
        return self._write(arrow_schema(self.schema).empty_table(), partition)

    def _completed(self, rows: pa.Table) -> pa.Table:
        return completed(rows, arrow_schema(self.schema))

    def _write(self, stored: pa.Table, partition: Mapping[int, Any]) -> str:
        fields = self.partition_by
        names = (_folder_name(f.name, partition[f.field_id], len(fields)) for f in fields)
        path = "/".join((self.folder, *names, f"{_attempt()}-{uuid.uuid4().hex}.parquet"))
        content, footer = encode(stored)
        columns = json.loads(self.schema)["fields"]
        metrics = measure(stored, footer, measured_columns(columns, self.full_metrics))
        self.storage.write(path, content)
        return describe_data_file(
            path,
            size=content.size,
            rows=stored.num_rows,
            metrics=metrics,
            spec_id=self.spec_id,
            partition={str(number): value for number, value in partition.items()},
        )


def _folder_name(name: str, value: Any, fields: int) -> str:
    """Return a name for readers of the bucket; a long value is cut, since S3 limits names.

    The value that counts is in the file's description.
    """
    longest = min(_MAX_FOLDER_NAME, _MAX_FOLDER_NAMES // fields) - len(name) - 1
    shown = str(value)[: max(longest, 0)]
    while len(quoted := quote_plus(shown)) > max(longest, 0):
        shown = shown[:-1]
    return f"{name}={quoted}"


def _attempt() -> str:
    context = TaskContext.get()
    return f"{context.partitionId()}-{context.taskAttemptId()}" if context else f"p{os.getpid()}"
