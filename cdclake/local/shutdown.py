"""End of a lake: stop it, pause it, leave the source, delete it."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from cdclake import naming
from cdclake.errors import InputError
from cdclake.local.components.connect_plugins import forget_plugins
from cdclake.local.firehose import component
from cdclake.local.lake import stack
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.lake import LakeState, LocalLake, describe_lake
from cdclake.local.lake.source import check_owner_in, remove_from_source
from cdclake.local.lake.source_owner import owner_of
from cdclake.local.lake.spark_jobs import STREAM
from cdclake.local.lake.stack import Endpoints
from cdclake.local.process.home import SERVER_CREDENTIALS, Home
from cdclake.plan import Plan

_SOURCE = "the source"

log = logging.getLogger("cdclake.local")
# Folders of a lake that a purge deletes, and what each holds.
_PURGED = {
    "kafka": "Kafka's topics, with events that are not in the lake yet",
    "aws": "tables of the lake, their history, and the control objects",
    "firehose": "buffers of Firehose",
    "checkpoints": "checkpoints of the stream",
    "spark": "temporary files of jobs",
    "figures": "figures of tables that `status` keeps until the next commit",
}


def purged_parts(home: Home, *, keep_slot: bool = False) -> list[dict[str, Any]]:
    """Return what `down --purge` deletes: each folder with its size, and what is in the source."""
    if not home.is_lake():
        return []
    state = LakeState.load(home)
    parts: list[dict[str, Any]] = [
        {"what": what, "where": str(home.data(name)), "bytes": _size_of(home.data(name))}
        for name, what in _PURGED.items()
        if home.data(name).is_dir()
    ]
    if home.clients.is_dir():
        what = "credentials of the lake's servers, for your own clients"
        parts.append({"what": what, "where": str(home.clients), "bytes": _size_of(home.clients)})
    if state != LakeState(database=state.database):
        what = "record of the lake: its pipeline file, epoch, masks, plugins and scheduled runs"
        parts.append({"what": what, "where": str(home.path), "bytes": None})
    if "source_dsn" in home.secret_names():
        what = "stored login of the source"
        parts.append({"what": what, "where": str(home.path), "bytes": None})
        if _is_in_a_source(home, state) and not keep_slot:
            plan = Plan.from_json(state.plan)
            what = f"slot, publication and role {plan.source_object}, and the schema cdclake"
            parts.append({"what": what, "where": _SOURCE, "bytes": None})
    return parts


def _is_in_a_source(home: Home, state: LakeState) -> bool:
    """Return True if the lake has a slot and other objects in a database of the user's."""
    streams = bool(state.plan and Plan.from_json(state.plan).tables)
    return streams and state.in_source and "source_dsn" in home.secret_names()


def _size_of(folder: Path) -> int:
    """Return the bytes of the files below a folder; one that is deleted meanwhile counts as 0."""
    found = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                found += Path(place, name).lstat().st_size
    return found


def down(home: Home, *, purge: bool, keep_slot: bool = False) -> dict[str, Any]:
    """Stop everything and keep all data; with `purge` remove the lake, never the source's data.

    With `keep_slot`, an external source keeps our objects, and the next `up` continues from them.
    """
    if not home.is_lake():  # its files are not a lake's, and the lock would create the folder
        return _answer(stopped=False, purged=purge)
    with home.changing():
        return _down(home, purge=purge, keep_slot=keep_slot)


def _down(home: Home, *, purge: bool, keep_slot: bool) -> dict[str, Any]:
    """Run `down` under the lock, so that no `up` runs between two of its steps."""
    state = LakeState.load(home)
    is_foreign = _is_in_a_source(home, state)
    lake = _lake_to_leave(home, state) if is_foreign and not keep_slot else None
    kept = [f"slot {Plan.from_json(state.plan).source_object}"] if is_foreign and keep_slot else []
    stopped = stack.shut_down(home)
    dropped = _leave_source(home, state, lake) if lake is not None else []
    deleted = purged_parts(home) if purge else []
    if purge:
        _purge(home, state)
    return _answer(stopped=stopped, purged=purge, deleted=deleted, dropped=dropped, kept=kept)


def _answer(
    *,
    stopped: bool,
    purged: bool,
    deleted: Sequence[dict[str, Any]] = (),
    dropped: Sequence[str] = (),
    kept: Sequence[str] = (),
) -> dict[str, Any]:
    return {
        "ok": True,
        "stopped": stopped,
        "purged": purged,
        "deleted": [part for part in deleted if part["where"] != _SOURCE],
        "dropped": list(dropped),
        "kept": list(kept),
    }


def _lake_to_leave(home: Home, state: LakeState) -> LocalLake:
    """Return the lake whose objects leave the source: an unread slot would retain WAL forever.

    Raises InputError if the source does not answer, or its objects are of another lake; nothing has
    been stopped then.
    """
    lake = describe_lake(home, state)
    try:
        check_owner_in(lake.dsn, lake.plan, owner_of(home, state))
    except InputError as error:
        keeping = "run `cdclake down --keep-slot` to leave the slot there"
        raise InputError(error.message, f"{keeping}; or {error.remedy}") from None
    return lake


def _leave_source(home: Home, state: LakeState, lake: LocalLake) -> list[str]:
    """Remove cdclake's objects from an external source, and note that; return what was removed."""
    dropped = remove_from_source(lake.dsn, lake.plan, owner_of(home, state))
    try:
        replace(state, left_source=True).save(home)
    except OSError as error:
        log.warning("cannot record in %s that the source was cleaned up: %s", home.path, error)
    return dropped


def _purge(home: Home, state: LakeState) -> None:
    """Remove topics, lake and checkpoints; the embedded database keeps the user's tables.

    The next lake has other credentials, and no runs of this one's scheduled jobs.

    Raises:
        InputError: if a folder cannot be deleted or the record cannot be written; the lake then
            still has its record
    """
    try:
        for folder in filter(Path.is_dir, (*map(home.data, _PURGED), home.clients)):
            shutil.rmtree(folder)
        home.forget_processes()
    except OSError as error:
        raise InputError(
            f"cannot delete {error.filename}: {error.strerror}",
            "check its permissions and run `cdclake down --purge` again",
        ) from None
    forget_plugins(home)
    try:
        LakeState(database=state.database).save(home)
        home.forget("source_dsn", *SERVER_CREDENTIALS)
    except OSError as error:
        raise InputError(
            f"the lake's data is deleted, but the record of the lake is not: {error.strerror}",
            f"make {home.path} writable, with space, and run `cdclake down --purge` again",
        ) from None


def stop_streaming(home: Home, endpoints: Endpoints, state: LakeState) -> None:
    """Stop the stream and the connectors of an earlier `up`; a new worker starts these again."""
    plan = Plan.from_json(state.plan) if state.plan else None
    if plan is None or not plan.tables:
        return
    ConnectorClient(endpoints.connect, plan).stop_existing()
    for declared in plan.connectors:
        name = naming.declared_connector_name(plan.name, declared.name)
        ConnectorClient(endpoints.connect, plan, name=name).stop_existing()
    stack.stop_component(home, STREAM)


def pause(home: Home, lake: LocalLake) -> dict[str, Any]:
    """Stop the stream between two commits, and Firehose; changes accumulate in Kafka."""
    stack.stop_component(home, STREAM)
    stack.stop_component(home, component.NAME)
    LakeState.set_paused(home, paused=True)
    return {
        "ok": True,
        "tables": [{"table": t.name, "did": "paused"} for t in lake.plan.all_tables],
    }
