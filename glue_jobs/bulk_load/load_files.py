"""Files of loaded rows: those of the changelog and, if it is empty, those of the state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from cdclake import naming
from cdclake.iceberg.state_rows import EVENT_FACTS
from cdclake.jobs.apply.state_values import to_state
from cdclake.jobs.iceberg.file_target import FileTarget
from cdclake.jobs.runtime.python_worker import reduce_task_overhead
from cdclake.jobs.stream.row_files import FILE_BYTES
from cdclake.plan import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTargets:
    """Tables that the files are for."""

    changelog: FileTarget
    state: FileTarget | None  # None: the state is not written from the rows that are read
    ingested_at: int  # microseconds since 1970, of all rows


@dataclass(slots=True)
class LoadFiles:
    """Described files with the same rows for both tables; nothing is committed."""

    changelog: list[str] = field(default_factory=list)
    state: list[str] = field(default_factory=list)

    def add(self, other: LoadFiles) -> None:
        """Add the files of another task."""
        self.changelog += other.changelog
        self.state += other.state


class LoadWriter:
    """Writer of one task, which holds the rows of one file at most."""

    def __init__(self, targets: LoadTargets) -> None:
        self.written = LoadFiles()
        self._targets = targets
        self._log: list[pa.Table] = []
        self._state: list[pa.Table] = []
        self._held = 0

    def add(self, log: pa.Table, state: dict[str, pa.Array]) -> None:
        """Add changelog rows, which lack the time of ingestion, and their columns in the state."""
        moment = pa.scalar(self._targets.ingested_at, pa.timestamp("us", "UTC"))
        self._log.append(log.append_column(naming.INGESTED_AT, pa.repeat(moment, log.num_rows)))
        if self._targets.state is not None:
            self._state.append(_state_rows(log, state))
        self._held += log.nbytes
        if self._held >= FILE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        if self._log:
            self.written.changelog.append(
                self._targets.changelog.write(pa.concat_tables(self._log))
            )
        if self._targets.state is not None and self._state:
            self.written.state.append(self._targets.state.write(pa.concat_tables(self._state)))
        self._log, self._state, self._held = [], [], 0


def _state_rows(log: pa.Table, values: dict[str, pa.Array]) -> pa.Table:
    # Its columns about values that an event lacked are NULL.
    facts = {name: log[name] for name in EVENT_FACTS}
    return pa.table({**values, **facts, naming.DELETED: pa.repeat(False, log.num_rows)})


def write_decoded(rows: DataFrame, table: Table, targets: LoadTargets) -> LoadFiles:
    """Write changelog rows that Spark has; they lack the time of ingestion."""
    cores = rows.sparkSession.sparkContext.defaultParallelism
    task = _task(table, targets)
    found = rows.coalesce(cores).mapInArrow(task, "file string, is_state boolean").collect()
    return LoadFiles(
        [row["file"] for row in found if not row["is_state"]],
        [row["file"] for row in found if row["is_state"]],
    )


def _task(
    table: Table, targets: LoadTargets
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    in_state = () if targets.state is None else table.columns

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reduce_task_overhead()
        writer = LoadWriter(targets)
        for batch in batches:
            values = {c.name: to_state(batch[c.name], c.column_type) for c in in_state}
            writer.add(pa.Table.from_batches([batch]), values)
        writer.flush()
        for is_state, files in ((False, writer.written.changelog), (True, writer.written.state)):
            columns = [pa.array(files, pa.string()), pa.repeat(is_state, len(files))]
            yield pa.RecordBatch.from_arrays(columns, ["file", "is_state"])

    return write
