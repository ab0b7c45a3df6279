"""Asking the stream for something, and reading what became of it: objects that it looks for."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from cdclake import naming
from cdclake.debezium.position import epoch_start, just_after
from cdclake.errors import ComponentFailed, TableError
from cdclake.jobs.control.progress import GIVEN_UP, TableProgress
from cdclake.jobs.control.store import ObjectStore

Answer = dict[str, Any]
REPLAY, RESYNC = "replay", "resync"
REQUESTS, _OUTCOMES = "repairs", "repaired"


def request_name(table: str, verb: str) -> str:
    """The request's name in the control store."""
    return f"{REQUESTS}/{table}.{verb}.json"


def outcome_name(table: str, verb: str) -> str:
    """Where its outcome is when it is done."""
    return f"{_OUTCOMES}/{table}.{verb}.json"


def request_replay(control: ObjectStore, table: str) -> str:
    """Have the table's quarantined events tried again; the request's id, of a pending one its."""
    stored = control.read(request_name(table, REPLAY))
    request = str(stored.content["id"]) if stored else uuid.uuid4().hex
    control.write(request_name(table, REPLAY), {"id": request})
    return request


def resync_under_way(
    control: ObjectStore, table: str, is_signalled: Callable[[str], bool]
) -> str | None:
    """The id of the table's resync that is not done yet and goes on by itself, if there is one.

    Whoever asked may have died before the connector was: nobody reads for such a request. Another
    one takes its place, with the position of now: the table may have lost changes since. A table
    that rejoins is signalled by `up`, and under no request's id.
    """
    stored = control.read(request_name(table, RESYNC))
    if stored is None:
        return None
    asked, request = stored.content, str(stored.content["id"])
    goes_on = "ended" in asked or asked.get("rejoins") or is_signalled(request)
    return request if goes_on else None


def request_resync(
    control: ObjectStore,
    table: str,
    *,
    epoch: int,
    known: str | None,
    notified: int,
    rejoins: bool = False,
) -> str:
    """Have the stream sweep the table when the next reading of it ends; the request's id.

    `known` is the last position in its log, which nothing of that reading will be at or below;
    `notified` the offset of the connector's next notification. Ask before the reading is asked for,
    by a signal of the same id: by that `resync_under_way` sees whether it was.
    A table that `rejoins` has missed changes.
    """
    start = str(epoch_start(epoch))
    position = max(start, str(just_after(known))) if known else start
    request = {
        "id": uuid.uuid4().hex,
        "position": position,
        "notified": notified,
        "rejoins": rejoins,
    }
    control.write(request_name(table, RESYNC), request)
    return str(request["id"])


def being_read(table: str) -> TableError:
    """Why a table cannot be read again now.

    Its first rows may have been read before; its end would be taken for that of a new reading.
    """
    return TableError(
        table,
        "the connector is still reading it, since it was added or resynced before",
        "wait until it has read all of it, then run this again",
    )


def request_resume(control: ObjectStore, table: str, progress: TableProgress) -> bool:
    """Have a stopped table read its gap; whether it is stopped at all."""
    if progress.state != "stopped":
        return False
    control.write(f"resume/{table}.json", {})
    return True


def request_skip_gap(control: ObjectStore, table: str) -> None:
    """Have a stopped table go on from whatever Kafka still keeps; a resync reads what was lost."""
    control.write(f"resume/{table}.json", {"gap": GIVEN_UP})


def outcome(control: ObjectStore, table: str, verb: str, request: str) -> Answer | None:
    """What the stream says of the request, when it is done; ComponentFailed if it could not."""
    stored = control.read(outcome_name(table, verb))
    if stored is None or stored.content["id"] != request:
        return None
    if "error" in stored.content:
        raise ComponentFailed(
            f"{verb} of {table} failed: {stored.content['error']}",
            f"look at the stream's log, then run `cdclake {verb}` again",
            component=naming.STREAM_COMPONENT,
        )
    return stored.content


def replay_result(told: Mapping[str, Any]) -> Answer:
    """An outcome of a replay in words and figures."""
    refused = sum(told["refused"].values())
    did = f"replayed {told['replayed']}"
    if told["known"]:
        did += f", {told['known']} were in the log already"
    if refused:
        did += f", {refused} still refused"
    return {"did": did, **{name: told[name] for name in ("replayed", "known", "refused")}}


def resync_result(told: Mapping[str, Any]) -> Answer:
    """An outcome of a resync in words and figures."""
    if "epoch" in told:
        did = f"read by the whole snapshot that epoch {told['epoch']} began with"
    else:
        did = f"read {told['rows']} rows, removed {told['ghosts']} that the source does not have"
        if older := told["older_values"]:
            did += f"; {older} changed meanwhile, without all their values: run it again"
    return {"did": did, "rows": told["rows"], "ghosts": told["ghosts"]}
