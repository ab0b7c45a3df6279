"""Carry out requested operations in the stream, the changelog's only writer.

The stream finds a request in its next micro-batch, at the latest with the next heartbeat. It
writes the outcome under the request's id and then removes the request. A stream that dies in
between repeats the operation, which is idempotent.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.control_objects import (
    FORGET,
    REPLAY,
    REQUESTS,
    RESYNC,
    ForgetRequest,
    ReplayRequest,
    ResyncRequest,
    ScanEnd,
    failed_result,
    outcome_content,
    outcome_name,
    request_name,
    split_request_name,
)
from cdclake.debezium.position import Position, epoch_start
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.requests import remove_request
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.iceberg.error_policy import Kind, cause_of, passing_cause
from cdclake.jobs.operations.erasure import erase_rows
from cdclake.jobs.operations.oversized_rows import release_markers, unread_markers
from cdclake.jobs.operations.replay import note_released, release_refused, replay_quarantine
from cdclake.jobs.operations.stale_rows import (
    count_older_values,
    count_read_rows,
    delete_stale_rows,
)
from cdclake.jobs.stream.changelog_job import Ranges
from cdclake.jobs.stream.kafka_range import read_gap
from cdclake.jobs.stream.quarantined_rows import count_unplaced
from cdclake.jobs.stream.table_stream import TableStream
from cdclake.plan import Plan, Table

log = logging.getLogger("cdclake.stream")

_READ = ("SUCCEEDED", "EMPTY")  # Debezium's status of a complete snapshot of a table

Json = dict[str, Any]
Request = ReplayRequest | ResyncRequest | ForgetRequest
_KINDS: Mapping[str, type[Request]] = {
    REPLAY: ReplayRequest,
    RESYNC: ResyncRequest,
    FORGET: ForgetRequest,
}


@dataclass(frozen=True, slots=True)
class TableRequest:
    """Request for one table."""

    table: Table
    verb: str
    content: Request


class OperationExecutor:
    """Executor of the requests for the tables of one stream."""

    def __init__(self, control: ObjectStore, brokers: dict[str, str]) -> None:
        self._control = control
        self._brokers = brokers

    def run(
        self,
        plan: Plan,
        events: DataFrame,
        ranges: Mapping[str, Ranges],
        progress: Progress,
        stream_of: Callable[[Table], TableStream],
    ) -> None:
        """Carry out all requests that can be done; call it after the batch's changelog commits.

        They run one after the other, because all tables share one quarantine. The requests of a
        stopped table wait until it streams again. So does one that S3, Glue or Kafka fails: the
        next batch tries again. Raises that error if it hides the end of a snapshot, which this
        batch alone has.
        """
        for request in list(self._requests(plan)):
            name, content = request.table.name, request.content
            try:
                if isinstance(content, ResyncRequest) and content.ended is None:
                    content = self._with_end(plan, request.table, content, events, ranges, progress)
            except Exception as error:
                if passing_cause(error) is not None:
                    raise
                self._fail(request, error)
                continue
            if not progress.table(name).is_streaming:
                continue
            try:
                result = self._result(content, progress, stream_of(request.table))
            except Exception as error:
                if passing_cause(error) is None:
                    self._fail(request, error)
                else:
                    log.warning("%s of %s is tried again", request.verb, name, exc_info=True)
                continue
            if result is not None:
                log.info("%s of %s: %s", request.verb, name, result)
                progress.save(self._control)  # first: a repeated request would not find it all
                self._answer(request, result)

    def _fail(self, request: TableRequest, error: Exception) -> None:
        """Answer a request with the error; raise it if the stream itself has to end."""
        if cause_of(error, Kind.FENCED, Kind.JVM_FAILED) is not None:
            raise error
        log.error("%s of %s failed", request.verb, request.table.name, exc_info=error)
        self._answer(request, failed_result(error))

    def _answer(self, request: TableRequest, result: Json) -> None:
        """Write the outcome and remove the request; leave a repeated one to the next batch."""
        table, verb = request.table.name, request.verb
        if isinstance(request.content, ReplayRequest) and self._is_repeated(table, request.content):
            return
        outcome = outcome_content(request.content.id, result)
        self._control.write(outcome_name(table, verb), outcome)
        remove_request(self._control, table, verb, request.content.id)

    def _is_repeated(self, table: str, request: ReplayRequest) -> bool:
        """Return whether the replay was requested again since this batch has read the request."""
        stored = self._control.read(request_name(table, REPLAY))
        if stored is None or stored.content.get("id") != request.id:
            return False
        return stored.content != request.to_json()

    def _result(self, request: Request, progress: Progress, stream: TableStream) -> Json | None:
        if isinstance(request, ReplayRequest):
            return _replay(progress, stream)
        if isinstance(request, ForgetRequest):
            mine = progress.table(stream.table.name)
            return erase_rows(request, mine, stream, self._control)
        return _resync(request, progress, stream)

    def _requests(self, plan: Plan) -> Iterator[TableRequest]:
        tables = {table.name: table for table in plan.tables}
        for name in list(self._control.names(REQUESTS)):
            table, verb = split_request_name(name)
            stored = self._control.read(request_name(table, verb))
            if stored is None or table not in tables:
                continue
            if verb == FORGET and tables[table].delivery == "firehose":
                continue  # the job that applies its changelog answers it
            try:
                content = _KINDS[verb].from_json(stored.content)
            except KeyError as error:
                self._reject(table, verb, stored.content, f"the request has no {error}")
            else:
                yield TableRequest(tables[table], verb, content)

    def _reject(self, table: str, verb: str, content: Json, reason: str) -> None:
        """Answer a request that cannot be parsed, and remove it: no batch could ever run it."""
        log.error("%s of %s rejected: %s", verb, table, reason)
        outcome = outcome_content(str(content.get("id", "")), {"error": reason})
        self._control.write(outcome_name(table, verb), outcome)
        remove_request(self._control, table, verb, content.get("id"))

    def _with_end(
        self,
        plan: Plan,
        table: Table,
        request: ResyncRequest,
        events: DataFrame,
        ranges: Mapping[str, Ranges],
        progress: Progress,
    ) -> ResyncRequest:
        """Store in the request that the connector has read the table, and its end offsets.

        The batch that has the end of the snapshot may lack rows of other partitions.
        """
        if plan.notification_topic not in ranges:
            return request
        received = events.where(F.col("topic") == plan.notification_topic)
        received = received.where(F.col("offset") >= request.notified)
        values = received.select("value").collect()
        ended = scan_end((json.loads(row["value"]) for row in values), table)
        if ended is None:
            return request
        resume = progress.table(table.name).offsets
        _, missing = read_gap(events.sparkSession, self._brokers, table, resume, {})
        offsets = {partition: end for partition, (_, end) in missing.items()}
        request = request.with_end(replace(ended, offsets=offsets))
        self._control.write(request_name(table.name, RESYNC), request.to_json())
        return request


def scan_end(notifications: Iterator[Json], table: Table) -> ScanEnd | None:
    """Return the end of the connector's snapshot of the table, without offsets; None if not yet.

    Match by table, not by the signal's id: Debezium overwrites the id when another signal comes.
    """
    for notification in notifications:
        if notification["aggregate_type"] != "Incremental Snapshot":
            continue
        more = notification["additional_data"]
        if notification["type"] == "ABORTED":
            return ScanEnd(status="ABORTED", rows=0)
        if notification["type"] != "TABLE_SCAN_COMPLETED":
            continue
        if more["scanned_collection"] == table.source:
            return ScanEnd(status=more["status"], rows=int(more["total_rows_scanned"]))
    return None


def _replay(progress: Progress, stream: TableStream) -> Json:
    done = replay_quarantine(stream, epoch=progress.epoch)
    mine = progress.table(stream.table.name)
    # Withheld events were never counted among those that stop the table.
    note_released(mine, stream, done.released - done.withheld)
    return asdict(done)


def _resync(request: ResyncRequest, progress: Progress, stream: TableStream) -> Json | None:
    """Delete stale rows once all rows of the snapshot are in the changelog; None if not yet."""
    mine, ended = progress.table(stream.table.name), request.ended
    if request.rejoins:
        mine.missed_below = request.position  # kept if the resync fails
    if Position.parse(request.position).epoch < progress.epoch:
        # The signal was lost with the old epoch, and the new one began with a snapshot of all.
        if progress.is_replacing(stream.table, progress.epoch):
            return None  # the table has not read that snapshot yet
        mine.missed_below = mine.warning = mine.incomplete = None
        _release_markers(mine, stream, str(epoch_start(progress.epoch)))
        released = _release_refused(request, mine, stream)
        return {"rows": 0, "ghosts": 0, "epoch": progress.epoch, "released": released}
    if ended is None:
        return None
    if ended.status not in _READ:
        return _failed(mine, f"the connector did not read {stream.table.source}: {ended.status}")
    if any(mine.offsets.get(partition, 0) < end for partition, end in ended.offsets.items()):
        return None
    if reason := _why_unknown(request, ended.rows, mine, stream):
        return _failed(mine, reason)
    ghosts = delete_stale_rows(stream, request.position)
    mine.note_complete_read(request.position)
    _release_markers(mine, stream, None)
    released = _release_refused(request, mine, stream)
    done = {"rows": ended.rows, "ghosts": ghosts, "released": released}
    return {**done, "older_values": _note_missed(request, mine, stream)}


def _failed(mine: TableProgress, reason: str) -> Json:
    """Return the error of a resync; `status` shows it if values may be old: `up` does not wait."""
    if mine.missed_below is not None:
        mine.warning = reason
    return {"error": reason}


def _release_markers(mine: TableProgress, stream: TableStream, below: str | None) -> None:
    """Drop the markers of rows that were too large once, and have been read since."""
    if mine.oversized is not None:
        note_released(mine, stream, release_markers(stream, below))
        mine.oversized = None


def _release_refused(request: ResyncRequest, mine: TableProgress, stream: TableStream) -> int:
    """Drop refused events from before the request, whose rows have been read since; count them.

    All stay if the topic is another one by now: its offsets may be those of newer events. They
    also stay if a row has a large value from before the request, as it changed meanwhile, and if
    deleted rows keep their values: a refused event may have a newer one.
    """
    if not request.offsets or request.topic_id != mine.topic_id:
        return 0
    if stream.table.deletes == "soft" or count_older_values(stream, request.position):
        return 0
    released = release_refused(stream, request.offsets)
    note_released(mine, stream, released)
    return released


def _why_unknown(
    request: ResyncRequest, read: int, mine: TableProgress, stream: TableStream
) -> str | None:
    """Return why it is unknown which rows are stale after a read of so many rows; None if not."""
    lake, table, plan = stream.lake, stream.table, stream.plan
    if unread := unread_markers(stream, request.position):
        return f"{len(unread)} rows are too large to be read, for example {unread[0]}"
    found = count_read_rows(stream, request.position)
    if found < read:
        return (
            f"the connector read {read} rows and only {found} of them are in the changelog, so no"
            f" row was removed as stale: run `cdclake replay --table {table.name}` if events of the"
            f" table are in quarantine, then `cdclake resync {table.name}` again"
        )
    offsets = request.offsets if request.topic_id == mine.topic_id else {}
    unplaced = count_unplaced(lake, table, plan, request.position, offsets)
    if unplaced:
        return (
            f"{unplaced} events since the request are in quarantine, and their keys or positions"
            f" are unreadable, so no row was removed as stale: see {naming.QUARANTINE} for the"
            f" reasons, then run `cdclake resync {table.name}` again"
        )
    return None


def _note_missed(request: ResyncRequest, mine: TableProgress, stream: TableStream) -> int:
    """Count rows that changed during the read and have values from before it.

    `status` shows them as the table's last error. A repeated resync without a new loss or column
    counts the values that an earlier one has read as current.
    """
    newest = max(mine.first_seen.values(), default="")
    if mine.incomplete is not None or mine.missed_below is None or newest > mine.missed_below:
        mine.missed_below = request.position
    mine.incomplete = None
    rows = count_older_values(stream, mine.missed_below)
    if rows:
        mine.warning = (
            f"{rows} rows changed while they were read, and their events lacked large values, so"
            f" the lake may have older ones or none: run `cdclake resync {stream.table.name}` to"
            " read them"
        )
    else:
        mine.missed_below = mine.warning = None
    return rows
