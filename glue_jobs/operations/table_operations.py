"""Replay, resync, resume and forget: the sequence of each verb, over a backend.

The stream does the work, as the changelog's only writer. These commands write a request and wait
for its outcome. A command that dies in between is safe to repeat: the next one waits for the same
request, or replaces it if the connector never got its signal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from cdclake import naming
from cdclake.activity import Advance, Sampler, step
from cdclake.control_objects import FORGET, REPLAY, RESYNC, ResyncRequest
from cdclake.errors import CdcError, ComponentFailed, TableError
from cdclake.fail_points import reach
from cdclake.jobs.control import requests
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.requests import Answer
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.operations.backend import Backend
from cdclake.plan import Plan, Table
from cdclake.stream_requests import request_replay, request_resume

RESUME = "resume"
_SHOWN_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class TableOperations:
    """Operations on the tables of one stream."""

    backend: Backend

    def replay(self, tables: Sequence[Table], *, skip_stopped: bool = False) -> dict[str, Answer]:
        """Replay as `replay_each` does; raise the first error when all tables have ended."""
        done = self.replay_each(tables, skip_stopped=skip_stopped)
        answers: dict[str, Answer] = {}
        for table in tables:
            answer = done[table.name]
            if isinstance(answer, CdcError):
                raise answer
            answers[table.name] = answer
        return answers

    def replay_each(
        self, tables: Sequence[Table], *, skip_stopped: bool
    ) -> dict[str, Answer | CdcError]:
        """Retry the tables' quarantined events, wait, and return each table's answer or error.

        A stopped table is not replayed: its answer is its TableError, or with `skip_stopped` that
        nothing was done. All requests are written before the first wait, so that one batch can
        answer them. It does so one after the other: the timeout begins again with each answer.
        """
        self.backend.check_running()
        errors = self._errors_of_stopped(tables)
        ids = self._request_replays(tables, errors)
        done: dict[str, Answer | CdcError] = {
            name: nothing_done(error) if skip_stopped else error for name, error in errors.items()
        }
        deadline = time.monotonic() + self.backend.timeouts_s[REPLAY]
        for name, request in ids.items():
            try:
                outcome = self._await_outcome(REPLAY, name, request, deadline=deadline)
            except CdcError as error:
                done[name] = error
            else:
                done[name] = requests.replay_result(outcome)
                deadline = time.monotonic() + self.backend.timeouts_s[REPLAY]
        return done

    def resync(self, table: Table, *, wait: bool = True) -> Answer:
        """Read the table again, delete the rows that the source lacks, and return the answer.

        Without `wait` return as soon as the stream and the connector have the request.
        """
        self.backend.check_running()
        self.backend.check_snapshot(table)
        self._skip_expired_gap(table)
        with self.backend.exclusive():
            pending = requests.pending_resync(
                self.backend.control, table.name, partial(self._will_end, table)
            )
            request = pending or self._request_resync(table)
        if not wait:
            return {"did": "requested; the stream removes stale rows after reading all rows"}
        return requests.resync_result(
            self._await_outcome(RESYNC, table.name, request, self.backend.reading(table))
        )

    def await_earlier_erasure(self, table: Table) -> None:
        """Wait until the stream has answered a pending request to erase rows of the table."""
        self.backend.check_running()
        if (earlier := requests.pending_forget(self.backend.control, table.name)) is not None:
            self.await_erasure(table, earlier)

    def await_erasure(self, table: Table, request: str) -> Answer:
        """Let the stream answer a request to erase rows, wait, and return the outcome."""
        self.backend.wake_stream()
        return self._await_outcome(FORGET, table.name, request)

    def incomplete(self, tables: Sequence[Table]) -> list[Table]:
        """Select the tables that lack rows because Kafka has lost events before they were read."""
        places = {table.name: self._progress(table) for table in tables}
        return [
            table
            for table in tables
            if (place := places[table.name]).incomplete is not None
            or (not place.is_streaming and self.backend.has_lost_events(table, place))
        ]

    def accept_new_topics(self, tables: Sequence[Table]) -> None:
        """Let the tables continue in new topics, after a new epoch has begun with a snapshot."""
        for table in tables:
            place = self._progress(table)
            if not place.is_streaming and self.backend.has_lost_events(table, place):
                request_resume(self.backend.control, table.name, skip_gap=True, has_snapshot=True)
                self.backend.wake_stream()
                self._await_streaming(table)

    def resume(self, tables: Sequence[Table]) -> dict[str, Answer]:
        """Start the stream if it is paused, and let stopped tables read their gap and rejoin."""
        self.backend.check_resumable()
        answers = resume_stopped(self.backend.control, tables, was_paused=self.backend.is_paused())
        self.backend.start_stream()
        return answers

    def request_rejoins(self, known: Mapping[str, str | None]) -> dict[str, str]:
        """Request resyncs of tables that rejoin or have new columns; return the ids by table.

        `known` is the newest position of each. `up` has read their relations before; it sends the
        signal of each table under its request's id.
        """
        if not known:
            return {}
        notified, lsn = self.backend.next_notification(), self.backend.settled_lsn()
        return {
            name: requests.request_resync(
                self.backend.control,
                name,
                epoch=self.backend.epoch(),
                known=position,
                notified=notified,
                lsn=lsn,
                rejoins=True,
            )
            for name, position in known.items()
        }

    def refuse_if_being_read(self, tables: Iterable[Table]) -> None:
        """Raise TableError if the connector reads one of the tables.

        Its first rows may be older than the new request, and the end of the running snapshot would
        pass for the end of the new one.
        """
        being_read = self.backend.tables_being_read()
        for table in tables:
            if table.source in being_read:
                raise TableError(
                    table.name,
                    "the connector is still reading it (it was added or resynced)",
                    "wait until the snapshot is complete, then run this again",
                )

    def _request_replays(
        self, tables: Iterable[Table], stopped: Mapping[str, TableError]
    ) -> dict[str, str]:
        """Request the replays of the tables that are not stopped; return the ids by table."""
        control = self.backend.control
        with self.backend.exclusive():
            ids = {t.name: request_replay(control, t.name) for t in tables if t.name not in stopped}
        self.backend.wake_stream()
        return ids

    def _will_end(self, table: Table, request: ResyncRequest) -> bool:
        """Return whether the stream will get the end of the read that was requested."""
        if not self.backend.is_signalled(request.id):
            return False
        has_notifications = request.notified >= self.backend.first_notification()
        return has_notifications or table.source in self.backend.tables_being_read()

    def _request_resync(self, table: Table) -> str:
        """Note the source's position before the signal: all that the snapshot reads is after it.

        Read the relations before that: rows that vanished with one of their changes have no event
        above the position, and a change from then on is reported.
        """
        self.refuse_if_being_read([table])
        read = self._progress(table)
        known = self.backend.newest_position(table)
        source = self.backend.read_relations()
        request = requests.request_resync(
            self.backend.control,
            table.name,
            epoch=self.backend.epoch(),
            known=known,
            notified=self.backend.next_notification(),
            lsn=self.backend.settled_lsn(),
            read=read,
        )
        reach("between_request_and_signal")
        self.backend.signal_snapshot(table, request, source)
        return request

    def _skip_expired_gap(self, table: Table) -> None:
        """Let a stopped table continue after its expired events, and wait until it streams.

        Raise its TableError if none of its events have expired, or if it does not start again.
        """
        progress = self._progress(table)
        if progress.is_streaming:
            return
        if not self.backend.has_lost_events(table, progress):
            raise _stopped(table.name, progress)
        request_resume(self.backend.control, table.name, skip_gap=True)
        self._await_streaming(table)

    def _await_streaming(self, table: Table) -> None:
        deadline = time.monotonic() + self.backend.timeouts_s[REPLAY]
        with step(f"wait until {table.name} rejoins"):
            while not (progress := self._progress(table)).is_streaming:
                if time.monotonic() > deadline:
                    raise _stopped(table.name, progress)
                time.sleep(self.backend.poll_interval_s)

    def _await_outcome(
        self,
        verb: str,
        table: str,
        request: str,
        read: Callable[[], Advance | None] = lambda: None,
        deadline: float | None = None,
    ) -> Answer:
        """Wait for the outcome of the table's request; `read` returns its progress.

        Raise ComponentFailed if a component or the request failed, or after the deadline, by
        default that of the timeout. A pending request remains, and the stream carries it out.
        """
        if deadline is None:
            deadline = time.monotonic() + self.backend.timeouts_s[verb]
        with step(f"{verb} {table}") as shown:
            sampler = Sampler(shown, read, _SHOWN_EVERY_S)
            while True:
                outcome = requests.read_outcome(self.backend.control, table, verb, request)
                if outcome is not None:
                    return outcome
                self.backend.check_health()
                self._check_streaming(table)
                sampler.sample()
                if time.monotonic() > deadline:
                    raise _timed_out(verb, table, self.backend.timeouts_s[verb])
                time.sleep(self.backend.poll_interval_s)

    def _check_streaming(self, table: str) -> None:
        progress = Progress.load(self.backend.control).table(table)
        if not progress.is_streaming:
            raise _stopped(table, progress)

    def _errors_of_stopped(self, tables: Iterable[Table]) -> dict[str, TableError]:
        progress = Progress.load(self.backend.control)
        places = {table.name: progress.table(table.name) for table in tables}
        return {
            name: _stopped(name, place) for name, place in places.items() if not place.is_streaming
        }

    def _progress(self, table: Table) -> TableProgress:
        return Progress.load(self.backend.control).table(table.name)


def streamed_tables(plan: Plan, names: Sequence[str] = ()) -> list[Table]:
    """Return the named tables, or all that the stream writes.

    Raise InputError for an unknown name, or for a table that Firehose delivers.
    """
    if names:
        return [plan.streamed(name) for name in names]
    return [table for table in plan.tables if table.delivery == "stream"]


def resume_stopped(
    control: ObjectStore, tables: Iterable[Table], *, was_paused: bool
) -> dict[str, Answer]:
    """Let stopped tables read their gap and rejoin; return what was done, by table."""
    progress = Progress.load(control)
    answers: dict[str, Answer] = {}
    for table in tables:
        did = "resumed" if was_paused else "flows"
        if not progress.table(table.name).is_streaming:
            request_resume(control, table.name)
            did = "asked to rejoin"
        answers[table.name] = {"did": did}
    return answers


def nothing_done(error: CdcError) -> Answer:
    """Return the answer for a table that the operation left alone."""
    return {"did": f"nothing: {error}"}


def _stopped(table: str, progress: TableProgress) -> TableError:
    return TableError(
        table,
        f"it is stopped: {progress.last_error}",
        "run `cdclake resume`, then repeat this command when the table is streaming",
    )


def _timed_out(verb: str, table: str, timeout_s: float) -> ComponentFailed:
    return ComponentFailed(
        f"{verb} of {table} is still pending after {timeout_s:.0f} s",
        "check that the stream runs (with `stream: {mode: scheduled}` at the times of"
        f" `schedules: apply`); `cdclake {verb}` again waits for the same request",
        naming.STREAM_COMPONENT,
    )
