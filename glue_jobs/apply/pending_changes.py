"""Changelog rows that a state lacks: which files have them, and their rows in a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdclake import naming
from cdclake.jobs.iceberg.decoded_size import decoded_bytes
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.iceberg.parquet_file import arrow_schema, completed, names_in_file
from cdclake.jobs.iceberg.row_selection import filtered
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.runtime.machine_memory import memory_per_core

# A task needs 3 to 5 times the decoded bytes of its rows (measured), and each core has a task. Next
# to them are Java's heap and the Python processes.
DECODED_PART_OF_MEMORY = 16


def max_decoded_bytes(memory: int) -> int:
    """Return the decoded bytes that an update may have where a core has this much memory.

    A column of texts has at most 2 GiB, so more memory does not allow more than 512 MiB.
    """
    return min(512 << 20, memory // DECODED_PART_OF_MEMORY)


# Of one update: its rows are held in a task.
MAX_EVENTS, MAX_BYTES = 500_000, 128 << 20
MAX_DECODED_BYTES = max_decoded_bytes(memory_per_core())
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFile:
    """Changelog file with the range of its times of ingestion, in microseconds since 1970."""

    path: str
    rows: int
    size: int
    has_deletes: bool  # another tool has deleted rows of it
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class TooLarge:
    """Answer of a task whose rows, once decoded, need too much memory: Spark divides them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingChanges:
    """Rows of these files that were ingested after `after` and up to `through`."""

    files: Sequence[str]
    schema: str  # the changelog's, in Iceberg's JSON
    storage: ObjectStorage
    after: int
    through: int
    rows: int  # at most
    size: int  # bytes of the files
    has_deletes: bool  # in some file
    max_decoded_bytes: int

    @property
    def fits_task(self) -> bool:
        """Return whether a task may read the rows: those of one ingestion may be too many.

        Only the task finds out whether they are too large, since the files are compressed. Tasks
        read no deletes of a changelog, which only other tools make; Spark does.
        """
        return self.rows <= MAX_EVENTS and self.size <= MAX_BYTES and not self.has_deletes

    def read(self) -> pa.Table | TooLarge:
        """Read the rows, with NULL in columns that a file lacks."""
        schema = arrow_schema(self.schema)
        parts, left = [schema.empty_table()], self.max_decoded_bytes
        for path in self.files:
            # All of its columns are wanted, so that one request for the whole file is the least.
            content = self.storage.read(path)
            footer = pq.read_metadata(pa.BufferReader(content))
            groups = range(footer.num_row_groups)
            left -= decoded_bytes(pa.BufferReader(content), footer, groups, enough=left)
            if left < 0:
                return TooLarge()
            parts.append(completed(self._rows_of(content, schema), schema))
        return pa.concat_tables(parts)

    def _rows_of(self, content: pa.Buffer, schema: pa.Schema) -> pa.Table:
        low, high = (_EPOCH + timedelta(microseconds=at) for at in (self.after, self.through))
        file = pq.ParquetFile(pa.BufferReader(content))
        names = names_in_file(file.schema_arrow, schema)
        parts = [file.schema_arrow.empty_table()]
        for block in file.iter_batches(use_threads=False):
            at = block.column(names[naming.INGESTED_AT])
            wanted = pc.and_(pc.greater(at, low), pc.less_equal(at, high))
            parts.append(filtered(pa.Table.from_batches([block]), wanted))
        rows = pa.concat_tables(parts)
        return pa.table({name: rows.column(in_file) for name, in_file in names.items()})


def next_pending(changelog: TableHandle, *, after: int, through: int) -> PendingChanges:
    """Return the oldest rows ingested after `after`, as many as one update takes.

    They are all rows ingested up to their `through`.
    """
    files = pending_files(changelog, after=after, through=through)
    until = _until(files, through)
    chosen = [file for file in files if file.first <= until]
    target = changelog.target()
    return PendingChanges(
        files=[file.path for file in chosen],
        schema=target.schema,
        storage=target.storage,
        after=after,
        through=until,
        rows=sum(file.rows for file in chosen),
        size=sum(file.size for file in chosen),
        has_deletes=any(file.has_deletes for file in chosen),
        max_decoded_bytes=MAX_DECODED_BYTES,
    )


def _until(files: Sequence[PendingFile], through: int) -> int:
    ends = sorted({min(file.last, through) for file in files})
    best = ends[0] if ends else through
    for end in ends:
        chosen = [file for file in files if file.first <= end]
        rows, size = sum(file.rows for file in chosen), sum(file.size for file in chosen)
        if rows > MAX_EVENTS or size > MAX_BYTES:
            return best
        best = end
    return through


def pending_files(changelog: TableHandle, *, after: int, through: int) -> list[PendingFile]:
    """Plan the changelog's files that may have rows ingested in this range."""
    within = changelog.ingested(after=after, through=through)
    ingested_at = changelog.field_id(naming.INGESTED_AT)
    found = changelog.described(within)
    return [_pending_file(described, ingested_at, after, through) for described in found]


def may_hold_lsn(changelog: TableHandle, *, from_lsn: int, through: int) -> bool:
    """Return whether a row ingested up to `through` may have this LSN or a greater one."""
    from_there = changelog.expressions.greaterThanOrEqual(naming.LSN, from_lsn)
    ingested = changelog.ingested(after=-1, through=through)
    condition = getattr(changelog.expressions, "and")(from_there, ingested)
    return changelog.may_have(condition)


def _pending_file(described: dict[str, Any], field: int, after: int, through: int) -> PendingFile:
    return PendingFile(
        path=described["file-path"],
        rows=described["record-count"],
        size=described["file-size-in-bytes"],
        has_deletes=described["has_deletes"],
        first=_bound(described, "lower-bounds", field, after + 1),
        last=_bound(described, "upper-bounds", field, through),
    )


def _bound(described: dict[str, Any], which: str, field: int, unknown: int) -> int:
    bounds = described.get(which) or {"keys": [], "values": []}
    known = dict(zip(bounds["keys"], bounds["values"], strict=True))
    text = known.get(field)
    return unknown if text is None else int.from_bytes(bytes.fromhex(text), "little", signed=True)
