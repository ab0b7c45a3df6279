"""Repairs that somebody asks the stream for, since it is the log's only writer: replay and resync.

A request is an object `repairs/<table>.<verb>.json` with an `id`; the stream takes it up in its
next batch, and heartbeats see to it that one comes. When it is done it writes the outcome under
that id to `repaired/<table>.<verb>.json` and removes the request. A stream that dies in between
does it again, which changes nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake.debezium.position import Position
from cdclake.errors import Fenced
from cdclake.jobs.control.progress import Progress, TableProgress
from cdclake.jobs.control.requests import REPLAY, REQUESTS, RESYNC, outcome_name, request_name
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.operations.replay import replay_quarantine
from cdclake.jobs.operations.stale_rows import count_older_values, delete_stale_rows
from cdclake.jobs.stream.kafka_range import read_gap
from cdclake.jobs.stream.table_batch import Ranges, TableBatch
from cdclake.plan import Plan, Table

log = logging.getLogger("cdclake.stream")

_READ = ("SUCCEEDED", "EMPTY")  # how Debezium's reading of a table may end well

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asks for, for one table."""

    table: Table
    verb: str
    content: Json


class OperationExecutor:
    """The requests for the tables of one stream."""

    def __init__(self, control: ObjectStore, brokers: dict[str, str]) -> None:
        self._control = control
        self._brokers = brokers

    def run(
        self,
        plan: Plan,
        events: DataFrame,
        ranges: Mapping[str, Ranges],
        progress: Progress,
        batch_of: Callable[[Table], TableBatch],
    ) -> None:
        """Do what is asked for and possible; call it when the batch's events are in the logs.

        One after the other, since all tables share one quarantine. A stopped table's requests wait
        until it flows again.
        """
        for request in list(self._requested(plan)):
            table = request.table.name
            try:
                if request.verb == RESYNC and "ended" not in request.content:
                    self._note_end(plan, request, events, ranges, progress)
                if progress.table(table).state != "streaming":
                    continue
                outcome = self._outcome(request, progress, batch_of(request.table))
            except Fenced:
                raise  # the request is the other stream's
            except Exception as error:  # whoever asked is told; the stream has other work
                log.exception("%s of %s failed", request.verb, table)
                outcome = {"error": str(error).splitlines()[0]}
            if outcome is not None:
                log.info("%s of %s: %s", request.verb, table, outcome)
                answer = {"id": request.content["id"], **outcome}
                self._control.write(outcome_name(table, request.verb), answer)
                self._control.delete(request_name(table, request.verb))

    def _requested(self, plan: Plan) -> Iterator[Request]:
        tables = {table.name: table for table in plan.tables}
        for name in list(self._control.names(REQUESTS)):
            table, verb, _ = name.split(".")
            stored = self._control.read(f"{REQUESTS}/{name}")
            if stored is not None and table in tables:
                yield Request(tables[table], verb, stored.content)

    def _outcome(self, request: Request, progress: Progress, batch: TableBatch) -> Json | None:
        if request.verb == REPLAY:
            return _replay(progress, batch)
        return _resync(request, progress, batch)

    def _note_end(
        self,
        plan: Plan,
        request: Request,
        events: DataFrame,
        ranges: Mapping[str, Ranges],
        progress: Progress,
    ) -> None:
        """Remember that the connector has read the table, and up to where its rows are in Kafka.

        Those of other partitions may not be in this batch, which the end of the reading is in.
        """
        if plan.notification_topic not in ranges:
            return
        said = events.where(F.col("topic") == plan.notification_topic)
        said = said.where(F.col("offset") >= request.content["notified"])
        values = said.select("value").collect()
        ended = scan_end((json.loads(row["value"]) for row in values), request.table)
        if ended is None:
            return
        topic, resume = request.table.topic, progress.table(request.table.name).offsets
        _, missing = read_gap(events.sparkSession, self._brokers, topic, resume, {})
        ended["offsets"] = {str(partition): end for partition, (_, end) in missing.items()}
        request.content["ended"] = ended
        self._control.write(request_name(request.table.name, request.verb), request.content)


def scan_end(notifications: Iterator[Json], table: Table) -> Json | None:
    """How the connector's reading of the table ended; None if it did not say so.

    By the table and not by the signal's id, which Debezium overwrites when another one comes.
    """
    for notification in notifications:
        if notification["aggregate_type"] != "Incremental Snapshot":
            continue
        more = notification["additional_data"]
        if notification["type"] == "ABORTED":
            return {"status": "ABORTED", "rows": 0}
        if notification["type"] != "TABLE_SCAN_COMPLETED":
            continue
        if more["scanned_collection"] == table.source:
            return {"status": more["status"], "rows": int(more["total_rows_scanned"])}
    return None


def _replay(progress: Progress, batch: TableBatch) -> Json:
    done = replay_quarantine(batch, epoch=progress.epoch)
    mine = progress.table(batch.table.name)
    mine.quarantined = max(0, mine.quarantined - done.released)
    return asdict(done)


def _resync(request: Request, progress: Progress, batch: TableBatch) -> Json | None:
    """Sweep when the reading is over and all its rows are in the log; None: not yet."""
    position, ended = request.content["position"], request.content.get("ended")
    mine = progress.table(batch.table.name)
    if request.content.get("rejoins"):
        mine.missed_below = mine.missed_below or position
    if Position.parse(position).epoch < progress.epoch:
        # Its signal went down with the old history; the new one began with a whole snapshot.
        mine.missed_below = None
        return {"rows": 0, "ghosts": 0, "epoch": progress.epoch}
    if ended is None:
        return None
    if ended["status"] not in _READ:
        return {"error": f"the connector did not read {batch.table.source}: {ended['status']}"}
    if any(
        mine.offsets.get(int(partition), 0) < end for partition, end in ended["offsets"].items()
    ):
        return None
    ghosts = delete_stale_rows(batch, position)
    return {"rows": ended["rows"], "ghosts": ghosts, "older_values": _note_missed(mine, batch)}


def _note_missed(mine: TableProgress, batch: TableBatch) -> int:
    """Rows that may hold a value from before changes passed the table by; `status` shows it."""
    if mine.missed_below is None:
        return 0
    rows = count_older_values(batch, mine.missed_below)
    if rows:
        mine.last_error = (
            f"{rows} rows changed while they were read again, without values that may have changed "
            f"while the table was away: `cdclake resync {batch.table.name}` reads them"
        )
    else:
        mine.missed_below = mine.last_error = None
    return rows
