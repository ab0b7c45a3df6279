"""Files of rows that Spark has: deduplicated ones, sweeps, replayed events, bulk loads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from cdclake.jobs.iceberg.data_file import path_of
from cdclake.jobs.iceberg.file_target import FileTarget
from cdclake.jobs.runtime.python_worker import reduce_task_overhead

FILE_BYTES = 64 * 1024 * 1024  # of Arrow memory, from which on a file is written


def write_rows(rows: DataFrame, target: FileTarget) -> list[str]:
    """Write rows in the table's columns; return the descriptions of the files.

    All rows must be of one day if the table is partitioned by days. Nothing is committed.
    """
    cores = rows.sparkSession.sparkContext.defaultParallelism
    written = rows.coalesce(cores).mapInArrow(_writer(target), "file string").collect()
    return [row["file"] for row in written]


def _writer(target: FileTarget) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reduce_task_overhead()
        held: list[pa.RecordBatch] = []
        held_bytes = 0
        for batch in batches:
            held.append(batch)
            held_bytes += batch.nbytes
            if held_bytes >= FILE_BYTES:
                yield _write_blocks(held, target)
                held, held_bytes = [], 0
        if held:
            yield _write_blocks(held, target)

    return write


def _write_blocks(blocks: Sequence[pa.RecordBatch], target: FileTarget) -> pa.RecordBatch:
    parts = [pa.Table.from_batches(blocks)]
    for name in (f.source for f in target.partition_by if f.transform == "identity"):
        parts = [
            part.filter(pc.equal(part[name], value))
            for part in parts
            for value in pc.unique(part[name]).to_pylist()
        ]
    files = [target.write(part) for part in parts]
    return pa.RecordBatch.from_pydict({"file": pa.array(files, pa.string())})


def read_rows(files: Sequence[str], target: FileTarget, like: DataFrame) -> DataFrame:
    """Read the target's files that are in no table yet; the columns are those of `like`.

    The result is deterministic: every evaluation reads the same files.
    """
    names, storage, spark = like.columns, target.storage, like.sparkSession

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column("path").to_pylist():
                stored = pq.read_table(pa.BufferReader(storage.read(path)), columns=names)
                yield from stored.to_batches()

    paths = spark.createDataFrame([(path_of(file),) for file in files], "path string")
    return paths.mapInArrow(read, like.schema)
