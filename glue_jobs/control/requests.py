"""Requests to the stream: write them, find them, and read their outcomes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cdclake import naming
from cdclake.control_objects import (
    FORGET,
    PAUSE,
    RESUMES,
    RESYNC,
    ForgetRequest,
    ResumeRequest,
    ResyncRequest,
    erasures_name,
    outcome_name,
    request_name,
    resume_name,
)
from cdclake.debezium.position import epoch_start, just_after, reached
from cdclake.erasures import Erasures
from cdclake.errors import ComponentFailed, NotRunning
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.control.table_progress import TableProgress

Answer = dict[str, Any]

_NOTHING_READ = TableProgress()


def pause_of(control: ObjectStore) -> NotRunning | None:
    """Return the error of a command that needs a deployed stream, if it is paused."""
    if control.read(PAUSE) is None:
        return None
    return NotRunning("the stream is paused", "run `cdclake resume`, then this again")


def pending_resync(
    control: ObjectStore, table: str, will_end: Callable[[ResyncRequest], bool]
) -> str | None:
    """Return the id of the table's pending resync, or None if there is none that will finish.

    A command may have died after the request and before its signal, or the end of the read may
    have expired from Kafka. The stream never gets the end of such a read: `will_end` returns False.
    A new request replaces it, at the current position, because the table may have lost changes
    since.
    """
    stored = control.read(request_name(table, RESYNC))
    if stored is None:
        return None
    request = ResyncRequest.from_json(stored.content)
    will_finish = request.ended is not None or will_end(request)
    return request.id if will_finish else None


def request_resync(
    control: ObjectStore,
    table: str,
    *,
    epoch: int,
    known: str | None,
    notified: int,
    lsn: int,
    rejoins: bool = False,
    read: TableProgress = _NOTHING_READ,
) -> str:
    """Request the deletion of stale rows after the next snapshot of the table; return the id.

    Write it before the signal, and send the signal under this id: `pending_resync` relies on both.

    Args:
        control: The control objects.
        table: Lake name of the table.
        epoch: The current epoch.
        known: The greatest position in the changelog. Every event of the snapshot is after it.
        notified: Offset of the connector's next notification.
        lsn: The source's WAL position. The changelog may be far behind it, and rows with events in
            between may be gone from the source without one. The rows of commits up to it, and of
            the first one above it, are visible (`settled_lsn`).
        rejoins: True if the table has missed changes, or values of new columns.
        read: The table's progress from before `lsn`: the resync settles refused events up to it.
    """
    newest = epoch_start(epoch)
    if known is not None:
        newest = max(newest, just_after(known))
    request = ResyncRequest(
        id=uuid.uuid4().hex,
        position=str(max(newest, reached(newest.epoch, lsn))),
        notified=notified,
        rejoins=rejoins,
        offsets=read.offsets,
        topic_id=read.topic_id,
    )
    control.write(request_name(table, RESYNC), request.to_json())
    return request.id


def last_erasure(control: ObjectStore, table: str) -> str:
    """Return the id of the table's last erasure that has ended; "" if there is none."""
    stored = control.read(outcome_name(table, FORGET))
    return "" if stored is None else str(stored.content["id"])


def pending_forget(control: ObjectStore, table: str) -> str | None:
    """Return the id of the table's pending erasure; a command may have died that waited for it.

    None if the stream will never carry it out, since its keys are not registered: the command died
    before, or a poll of the table failed to, before its changes came from the WAL.
    """
    stored, register = (
        control.read(name) for name in (request_name(table, FORGET), erasures_name(table))
    )
    if stored is None or register is None:
        return None
    request = ForgetRequest.from_json(stored.content)
    registered = Erasures.from_json(register.content).positions
    return request.id if request.is_registered(registered) else None


def request_forget(
    control: ObjectStore,
    table: str,
    hashes: Sequence[str],
    *,
    position: str = "",
    not_before: float = 0.0,
) -> str:
    """Request the erasure of rows whose keys have these hashes; return the id."""
    request = ForgetRequest(uuid.uuid4().hex, tuple(hashes), position, not_before)
    control.write(request_name(table, FORGET), request.to_json())
    return request.id


def unanswered_hashes(control: ObjectStore, table: str) -> tuple[str, ...]:
    """Return the hashes of the table's request that no job has answered; a new one replaces it."""
    stored = control.read(request_name(table, FORGET))
    return () if stored is None else ForgetRequest.from_json(stored.content).hashes


def take_resumes(control: ObjectStore, progress: Progress) -> None:
    """Move the requests to resume into the progress, which outlives a batch that fails."""
    for name in list(control.names(RESUMES)):
        table = name.removesuffix(".json")
        stored, place = control.read(resume_name(table)), progress.tables.get(table)
        if place is not None and stored is not None:
            place.ask_to_resume(ResumeRequest.from_json(stored.content))
            progress.save(control)
        if stored is not None and control.read(resume_name(table)) == stored:
            control.delete(resume_name(table))


def remove_request(control: ObjectStore, table: str, verb: str, answered: str | None) -> None:
    """Delete the request with this id; a new one that has replaced it meanwhile stays."""
    stored = control.read(request_name(table, verb))
    if stored is not None and stored.content.get("id") == answered:
        control.delete(request_name(table, verb))


def read_outcome(
    control: ObjectStore,
    table: str,
    verb: str,
    request: str,
    by: str = naming.STREAM_COMPONENT,
) -> Answer | None:
    """Return the outcome of the request, None if it is pending.

    Raise ComponentFailed, which names the component that has answered, if the request failed.
    """
    stored = control.read(outcome_name(table, verb))
    if stored is None or stored.content["id"] != request:
        return None
    if "error" in stored.content:
        raise ComponentFailed(
            f"{verb} of {table} failed: {stored.content['error']}",
            f"fix the cause (see the log of {by}), then run `cdclake {verb}` again",
            component=by,
        )
    return stored.content


def replay_result(outcome: Mapping[str, Any]) -> Answer:
    """Return the answer of `replay` for a table."""
    refused = sum(outcome["refused"].values())
    did = f"replayed {outcome['replayed']}"
    if outcome["known"]:
        did += f", {outcome['known']} were already in the changelog"
    if refused:
        did += f", {refused} still refused"
    return {"did": did, **{name: outcome[name] for name in ("replayed", "known", "refused")}}


def resync_result(outcome: Mapping[str, Any]) -> Answer:
    """Return the answer of `resync` for a table."""
    if "epoch" in outcome:
        did = f"epoch {outcome['epoch']} began with a snapshot of all tables, this one included"
    else:
        did = f"read {outcome['rows']} rows, removed {outcome['ghosts']} that the source lacks"
        if older := outcome["older_values"]:
            did += f"; {older} rows changed meanwhile without all their values: resync again"
    if released := outcome.get("released"):
        did += f"; {released} refused events, which it has settled, left the quarantine"
    return {"did": did, "rows": outcome["rows"], "ghosts": outcome["ghosts"]}
