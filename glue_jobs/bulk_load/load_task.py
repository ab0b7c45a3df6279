"""Work of one Spark task: read chunks of a table and write their rows for changelog and state.

The task returns descriptions of its files and counts, and never the rows. A chunk that is read
again, since its task failed, leaves files that are in no table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.jobs.bulk_load.load_files import LoadFiles, LoadTargets, LoadWriter
from cdclake.jobs.bulk_load.loaded_rows import SNAPSHOT_OP, ReadPlace, first_offset
from cdclake.jobs.bulk_load.sent_column import SentColumn
from cdclake.jobs.bulk_load.source_reader import SourceReader
from cdclake.jobs.runtime.python_worker import reduce_task_overhead
from cdclake.jobs.stream.block_arrays import Numbers
from cdclake.jobs.stream.changelog_columns import FACT_COLUMNS, arrow_type
from cdclake.jobs.stream.position_texts import position_texts
from cdclake.plan import Table
from cdclake.postgres.bulk_read import sent_rows


@dataclass(slots=True)
class LoadedChunk:
    """Result of one chunk."""

    number: int
    files: LoadFiles
    written: int = 0  # rows in the files
    unproved: int = 0  # rows that are in no file


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTask:
    """Function over chunks, each a number and a condition on the source's rows.

    The chunks are not among its fields: PySpark stores a function of a megabyte in a file, and this
    one has the password.
    """

    reader: SourceReader
    table: Table
    place: ReadPlace
    targets: LoadTargets

    def __call__(self, chunks: Iterable[tuple[int, str]]) -> Iterator[LoadedChunk]:
        """Load the chunks one after the other."""
        reduce_task_overhead()
        for number, condition in chunks:
            yield self._load(number, condition)

    def _load(self, number: int, condition: str) -> LoadedChunk:
        writer = LoadWriter(self.targets)
        chunk = LoadedChunk(number, writer.written)
        rows = SentRows(self.table, has_state=self.targets.state is not None)
        offset = first_offset(self.place.epoch, number)
        with self.reader.batches(sent_rows(self.table, condition)) as batches:
            for batch in batches:
                read = rows.read(batch, self.place, offset)
                offset += batch.num_rows
                if read.log.num_rows:
                    writer.add(read.log, read.state)
                chunk.written += read.log.num_rows
                chunk.unproved += batch.num_rows - read.log.num_rows
        writer.flush()
        return chunk


def load_chunks(spark: SparkSession, chunks: Sequence[str], task: LoadTask) -> list[LoadedChunk]:
    """Run a task for each chunk, as many at once as there are cores."""
    numbered = spark.sparkContext.parallelize(list(enumerate(chunks)), len(chunks))
    return numbered.mapPartitions(task).collect()


@dataclass(slots=True)
class ProvedRows:
    """Rows whose values are all proved: the changelog's, and the columns of the state."""

    log: pa.Table
    state: dict[str, pa.Array]


class SentRows:
    """Reader of a table's rows as COPY sends them."""

    def __init__(self, table: Table, *, has_state: bool) -> None:
        self._columns = [SentColumn(column, table, has_state=has_state) for column in table.columns]

    def read(self, batch: pa.RecordBatch, place: ReadPlace, offset: int) -> ProvedRows:
        """Read the rows of a batch, whose first one has this offset."""
        values = [column.read(batch.column(at)) for at, column in enumerate(self._columns)]
        facts = _facts(place, np.arange(offset, offset + batch.num_rows, dtype=np.int64))
        names = [column.name for column in self._columns]
        log = pa.table({**dict(zip(names, (v.log for v in values), strict=True)), **facts})
        state = dict(zip(names, (v.state for v in values), strict=True))
        proved = _all_of([v.proved for v in values if v.proved is not None])
        if proved is None:
            return ProvedRows(log, state)
        return ProvedRows(
            log.filter(proved), {name: array.filter(proved) for name, array in state.items()}
        )

    def unproved(self, batch: pa.RecordBatch) -> pa.Array:
        """Return for each row whether a value is not proved."""
        found = [column.read(batch.column(at)).proved for at, column in enumerate(self._columns)]
        proved = _all_of([each for each in found if each is not None])
        return pa.repeat(False, batch.num_rows) if proved is None else pc.invert(proved)


def _all_of(flags: Sequence[pa.Array]) -> pa.Array | None:
    """Return which rows have all flags; None if all rows have."""
    found = None
    for each in flags:
        if not pc.all(each, skip_nulls=False).as_py():
            found = each if found is None else pc.and_(found, each)
    return found


def _facts(place: ReadPlace, offsets: Numbers) -> dict[str, pa.Array]:
    """Return the columns about the events: equal for all rows, except offset and position."""
    count = len(offsets)

    def of_all(number: int) -> Numbers:
        return np.full(count, number, np.int64)

    known = {
        naming.OP: SNAPSHOT_OP,
        naming.COMMITTED_AT: place.read_at,
        naming.PARTITION: place.partition,
        naming.EPOCH: place.epoch,
        naming.LSN: place.lsn,
        naming.PREV_COMMIT_LSN: place.prev_commit_lsn,
        naming.PHASE: place.phase,
    }
    columns = {
        naming.OFFSET: pa.array(offsets),
        naming.POSITION: position_texts(
            of_all(place.epoch),
            of_all(place.prev_commit_lsn),
            of_all(place.phase),
            of_all(place.lsn),
            offsets,
        ),
    }
    for name, kind in FACT_COLUMNS.items():
        if name not in columns:
            value = pa.scalar(known.get(name), arrow_type(kind))
            columns[name] = (
                pa.repeat(value, count) if name in known else pa.nulls(count, value.type)
            )
    return {name: columns[name] for name in FACT_COLUMNS}
