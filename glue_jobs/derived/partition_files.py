"""Files of a derived table: written by Spark's tasks, in a folder for each partition's values."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from cdclake.derived_table import FileFormat
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.iceberg.parquet_file import columns_with_dictionary

LINE = "cdc__line"  # column with a row as JSON
WRITTEN_DDL = "path string, partition string, rows bigint"
_ROWS_PER_FILE = 1_000_000


@dataclass(frozen=True, slots=True)
class FileWriter:
    """Task that writes its rows, sorted by the partition columns and the key, into files.

    It returns for each file its path, its partition's values as JSON, and its number of rows. A
    task that is repeated replaces its files by the same: an executor that Spark has given up may
    still write, even after the folder is published.
    """

    folder: str
    format: FileFormat
    partition_by: tuple[str, ...]
    storage: ObjectStorage

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows of one task."""
        task = TaskContext.get()
        part = 0 if task is None else task.partitionId()
        for number, (values, rows) in enumerate(self._files(batches)):
            names = zip(self.partition_by, values, strict=True)
            folders = [f"{name}={value}" for name, value in names]
            path = "/".join((self.folder, *folders, f"{part:05}-{number:05}.{self._ending}"))
            self.storage.write(path, self._content(rows.drop_columns([*self.partition_by])))
            written = [path], [json.dumps(values)], [rows.num_rows]
            arrays = [pa.array(column) for column in written]
            yield pa.RecordBatch.from_arrays(arrays, ["path", "partition", "rows"])

    @property
    def _ending(self) -> str:
        return "json.gz" if self.format == "json" else "gz.parquet"

    def _files(
        self, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
        """Yield the rows of each file with its partition's values."""
        held: list[pa.RecordBatch] = []
        at: tuple[str, ...] = ()
        for batch in batches:
            for values, part in self._parts(batch):
                is_full = sum(each.num_rows for each in held) >= _ROWS_PER_FILE
                if held and (values != at or is_full):
                    yield at, pa.Table.from_batches(held)
                    held = []
                held.append(part)
                at = values
        if held:
            yield at, pa.Table.from_batches(held)

    def _parts(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, ...], pa.RecordBatch]]:
        """Cut a batch where a partition column changes."""
        columns = [batch.column(name).to_pylist() for name in self.partition_by]
        rows = list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows
        first = 0
        for end in range(1, len(rows) + 1):
            if end == len(rows) or rows[end] != rows[first]:
                yield rows[first], batch.slice(first, end - first)
                first = end

    def _content(self, rows: pa.Table) -> pa.Buffer:
        if self.format == "json":
            lines = "".join(f"{line}\n" for line in rows.column(LINE).to_pylist())
            return pa.py_buffer(gzip.compress(lines.encode(), mtime=0))
        sink = pa.BufferOutputStream()
        pq.write_table(
            rows,
            sink,
            compression="gzip",
            coerce_timestamps="us",
            use_dictionary=columns_with_dictionary(rows),
        )
        return sink.getvalue()
