"""Work of one Spark task: decode Kafka records of all topics and write the changelogs' files.

A task returns descriptions of its files and summaries of their events, and never the rows. What it
writes is in no table until the driver commits it, so a task that is repeated leaves only orphans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdclake import naming
from cdclake.jobs.iceberg.file_target import FileTarget
from cdclake.jobs.iceberg.row_selection import filtered
from cdclake.jobs.iceberg.task_failures import failure_text
from cdclake.jobs.runtime.python_worker import reduce_task_overhead
from cdclake.jobs.stream.avro_values import without_refusal
from cdclake.jobs.stream.changelog_columns import FINDINGS, REFUSAL, without_refused
from cdclake.jobs.stream.deduplicate import identity
from cdclake.jobs.stream.erased_events import SharedErasedKeys
from cdclake.jobs.stream.heartbeats import heartbeats_json
from cdclake.jobs.stream.partition_summary import summarize
from cdclake.jobs.stream.plan_decoders import PlanDecoders, bytes_of, decoders_of, runs_of
from cdclake.jobs.stream.refused_records import refused_records
from cdclake.jobs.stream.row_files import FILE_BYTES

HELD_BYTES = 4 * FILE_BYTES  # of all tables in one task

# One row per file, one per topic and partition with what was read, one per topic with `erased`.
RESULT = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "first": pa.int64(),  # offset; NULL in the row of a file
        "following": pa.int64(),
        "size": pa.int64(),  # bytes of the values
        "deferred": pa.int64(),  # bytes of the largest value that was left out; 0: none
        "heartbeats": pa.string(),
        "file": pa.string(),  # description of the file; NULL if no event was accepted
        "refused": pa.string(),  # description of the quarantine's file; NULL if none was refused
        "summary": pa.string(),
        "error": pa.string(),  # why there are no files of this topic
        "erased": pa.int64(),  # number of events of erased rows, which were dropped
    }
)
RESULT_DDL = (
    "topic string, partition int, first bigint, following bigint, size bigint, deferred bigint,"
    " heartbeats string, file string, refused string, summary string, error string,"
    " erased bigint"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTarget:
    """Table that a task writes for, and the records that its changelog lacks."""

    file: FileTarget
    ingested_at: int  # microseconds since 1970, of all rows
    taken: Mapping[int, int]  # by partition: the changelog has the records before this offset
    accepts_refused: bool = False  # events whose schema the registry refused, as an operator asked
    erased: SharedErasedKeys | None = None  # whose older events are dropped


@dataclass(frozen=True, slots=True)
class ChangelogTask:
    """Function for `mapInArrow`; it is pickled, so the decoders are made in the Python worker."""

    plan_json: str
    targets: Mapping[str, TableTarget]  # by topic
    quarantine: FileTarget

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Process batches of Kafka records; yield rows of RESULT.

        Each batch has topic, partition, offset, key, value, headers and `size`. A value that is
        NULL though it has a size was left out for a later job.
        """
        reduce_task_overhead()
        work = _Work(decoders_of(self.plan_json), self)
        for batch in batches:
            yield from _results(work.take(batch))
        yield from _results(work.finish())


def _results(rows: Iterable[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
    listed = list(rows)
    if listed:
        yield pa.RecordBatch.from_pylist(listed, RESULT)


@dataclass(slots=True)
class _Read:
    """What was read of one topic's partition."""

    first: int
    following: int
    size: int = 0
    deferred: int = 0
    heartbeats: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class _Held:
    """Decoded events of one table and partition that are not in a file yet."""

    blocks: list[pa.Table] = field(default_factory=list)
    refused: list[pa.Table] = field(default_factory=list)  # in the quarantine's columns
    size: int = 0


class _Work:
    """State of one task."""

    def __init__(self, decoders: PlanDecoders, task: ChangelogTask) -> None:
        self._decoders = decoders
        self._targets, self._quarantine = task.targets, task.quarantine
        self._read: dict[tuple[str, int], _Read] = {}
        self._held: dict[tuple[str, int], _Held] = {}
        self._erased: Counter[str] = Counter()  # events that were dropped, by topic
        self._failed: set[str] = set()  # topics: one table's failure is not that of the others

    def take(self, batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        """Take records; yield a result for each file that is full."""
        for topic, partition, records in runs_of(batch):
            self._note(topic, partition, records)
            target = self._targets.get(topic)
            if target is not None and topic not in self._failed:
                try:
                    self._decode(topic, partition, target, records)
                except Exception as error:
                    yield self._fail((topic, partition), error)
        yield from self._write_full()

    def finish(self) -> Iterator[dict[str, Any]]:
        """Write what is held; yield all results that are left."""
        while self._held:
            yield self._write(next(iter(self._held)))
        for topic, erased in self._erased.items():
            yield {"topic": topic, "erased": erased}
        for (topic, partition), read in self._read.items():
            beats = heartbeats_json(read.heartbeats) if read.heartbeats else None
            yield {
                "topic": topic,
                "partition": partition,
                "first": read.first,
                "following": read.following,
                "size": read.size,
                "deferred": read.deferred,
                "heartbeats": beats,
            }

    def _note(self, topic: str, partition: int, records: pa.RecordBatch) -> None:
        """Note offsets, sizes and heartbeats of a run of records."""
        ends = pc.min_max(records["offset"])
        first, last = ends["min"].as_py(), ends["max"].as_py()
        read = self._read.setdefault((topic, partition), _Read(first, last + 1))
        read.first, read.following = min(read.first, first), max(read.following, last + 1)
        read.size += pc.sum(records["size"]).as_py() or 0
        left_out = pc.and_(pc.is_null(records["value"]), pc.is_valid(records["size"]))
        largest = pc.max(records["size"].filter(left_out)).as_py() or 0
        read.deferred = max(read.deferred, largest)
        if topic == self._decoders.plan.heartbeat_rows_topic:
            read.heartbeats += records["value"].drop_null().to_pylist()

    def _decode(
        self, topic: str, partition: int, target: TableTarget, records: pa.RecordBatch
    ) -> None:
        wanted = _wanted(records, target, partition)
        if wanted.num_rows == 0:
            return
        table = self._decoders.tables[topic]
        decoder = self._decoders.decoder(table)
        values = bytes_of(wanted["value"])
        if target.accepts_refused:
            values = [without_refusal(value) for value in values]
        rows = decoder.decode(
            self._decoders.as_json(values),
            bytes_of(wanted["key"]),
            partition,
            wanted["offset"].to_numpy(),
        )
        if target.erased is not None:
            kept = target.erased.dropped(rows, wanted, table)
            self._erased[topic] += rows.num_rows - kept.num_rows
            rows = kept
        if rows.num_rows:
            held = self._held.setdefault((topic, partition), _Held())
            held.blocks.append(rows)
            held.size += rows.nbytes
            if rows[REFUSAL].null_count < rows.num_rows:
                refused = refused_records(wanted, rows, table)
                held.refused.append(refused)
                held.size += refused.nbytes

    def _write_full(self) -> Iterator[dict[str, Any]]:
        for place in [place for place, held in self._held.items() if held.size >= FILE_BYTES]:
            yield self._write(place)
        while sum(held.size for held in self._held.values()) > HELD_BYTES:
            yield self._write(max(self._held, key=lambda place: self._held[place].size))

    def _write(self, place: tuple[str, int]) -> dict[str, Any]:
        """Write the events of one table and partition; return the file and its summary."""
        held = self._held.pop(place)
        try:
            return self._written(place, held)
        except Exception as error:
            return self._fail(place, error)

    def _written(self, place: tuple[str, int], held: _Held) -> dict[str, Any]:
        topic, partition = place
        events = pa.concat_tables(held.blocks)
        target, table = self._targets[topic], self._decoders.tables[topic]
        accepted = without_refused(events).drop_columns(FINDINGS)
        file = None
        if accepted.num_rows:
            at = pa.repeat(pa.scalar(target.ingested_at, pa.timestamp("us", "UTC")), len(accepted))
            file = target.file.write(accepted.append_column(naming.INGESTED_AT, at))
        refused = None
        if held.refused:
            refused = self._quarantine.write(pa.concat_tables(held.refused))
        summary = summarize(events, partition, identity(table)).to_json()
        found = {"file": file, "refused": refused, "summary": summary}
        return {"topic": topic, "partition": partition, **found}

    def _fail(self, place: tuple[str, int], error: Exception) -> dict[str, Any]:
        """Give up the table's topic in this task; the driver tries it again."""
        topic, partition = place
        self._failed.add(topic)
        for held in [held for held in self._held if held[0] == topic]:
            del self._held[held]
        return {"topic": topic, "partition": partition, "error": failure_text(error)}


def _wanted(records: pa.RecordBatch, target: TableTarget, partition: int) -> pa.RecordBatch:
    """Select the records that the changelog lacks, without those that were left out."""
    offsets = records["offset"]
    is_left_out = pc.and_(pc.is_null(records["value"]), pc.is_valid(records["size"]))
    wanted = pc.invert(is_left_out)
    if partition in target.taken:
        wanted = pc.and_(wanted, pc.greater_equal(offsets, target.taken[partition]))
    return filtered(records, wanted)
