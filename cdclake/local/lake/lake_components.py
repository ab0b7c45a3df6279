"""Components of a lake, including writers of its tables that no command has started."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cdclake import naming
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LakeState
from cdclake.local.process.home import Home
from cdclake.plan import Plan


def lake_components(home: Home, state: LakeState) -> list[dict[str, Any]]:
    """List the components, and the missing writers as stopped; [] when the lake is down.

    `up` drops the processes of a dead supervisor, and may fail before it starts all of them again.
    While another command changes the lake, a missing writer is starting.
    """
    found = stack.components(home)
    if not found or not state.plan or state.paused or state.bare:
        return found
    names = {part["name"] for part in found}
    missing = [name for name in _writers(Plan.from_json(state.plan)) if name not in names]
    if not missing:
        return found
    expected = "starting" if home.is_being_changed() else "stopped"
    return [*found, *(_missing(home, name, expected) for name in missing)]


def _writers(plan: Plan) -> Iterator[str]:
    if plan.tables:
        yield naming.STREAM_COMPONENT
    if plan.streams:
        yield naming.FIREHOSE_COMPONENT


def _missing(home: Home, name: str, state: str) -> dict[str, Any]:
    return {"name": name, "pid": None, "state": state, "port": None, "log": str(home.log(name))}
