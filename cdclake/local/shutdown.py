"""End of a lake: stop it, pause it, leave the source, delete it (contract, section 5)."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

from cdclake.local.components.connect_plugins import forget_plugins
from cdclake.local.firehose import component
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LakeState, LocalLake, describe_lake
from cdclake.local.lake.source import check_source, remove_from_source
from cdclake.local.lake.spark_jobs import STREAM
from cdclake.local.process.home import Home
from cdclake.plan import Plan


def down(home: Home, *, purge: bool, keep_slot: bool = False) -> dict[str, Any]:
    """Stop everything and keep all data; with `purge` remove the lake, never the source's data.

    With `keep_slot`, an external source keeps our objects, and the next `up` continues from them.
    """
    state = LakeState.load(home)
    streams = bool(state.plan and Plan.from_json(state.plan).tables)
    is_foreign = streams and state.external and "source_dsn" in home.secret_names()
    dropped = _leave_source(home, state) if is_foreign and not keep_slot else []
    kept = [f"slot {Plan.from_json(state.plan).source_object}"] if is_foreign and keep_slot else []
    stopped = stack.shut_down(home)
    if purge and home.path.is_dir():
        _purge(home, state)
    return {"ok": True, "stopped": stopped, "purged": purge, "dropped": dropped, "kept": kept}


def _leave_source(home: Home, state: LakeState) -> list[str]:
    """Remove cdclake's objects from an external source: an unread slot would retain WAL forever.

    Return what was removed.
    """
    lake = describe_lake(home, state)
    check_source(lake.dsn, None, keeping="run `cdclake down --keep-slot` to leave the slot there")
    if stack.is_up(home):
        stack.stop_component(home, STREAM)
        stack.stop_component(home, "connect")
    return remove_from_source(lake.dsn, lake.plan)


def _purge(home: Home, state: LakeState) -> None:
    """Remove topics, lake and checkpoints; the embedded database keeps the user's tables."""
    for name in ("kafka", "aws", "firehose", "checkpoints", "spark", "figures"):
        shutil.rmtree(home.data(name), ignore_errors=True)
    forget_plugins(home)
    home.forget("source_dsn")
    kept = LakeState(database=state.database)
    kept.save(home)


def pause(home: Home, lake: LocalLake) -> dict[str, Any]:
    """Stop the stream between two commits, and Firehose; changes accumulate in Kafka."""
    stack.stop_component(home, STREAM)
    stack.stop_component(home, component.NAME)
    replace(lake.state, paused=True).save(home)
    return {
        "ok": True,
        "tables": [{"table": t.name, "did": "paused"} for t in lake.plan.all_tables],
    }
