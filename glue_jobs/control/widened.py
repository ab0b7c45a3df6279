"""Types that a source check has found widened: the jobs lay them over their plan."""

from __future__ import annotations

from cdclake.iceberg.widening import WidenedTypes
from cdclake.jobs.control.control_objects import WIDENED
from cdclake.jobs.control.requests import request_replay, request_resume
from cdclake.jobs.control.store import ObjectStore
from cdclake.plan import Plan


def read_widened(control: ObjectStore) -> WidenedTypes:
    """Return the types that were noted, by table and column."""
    stored = control.read(WIDENED)
    return {} if stored is None else stored.content["tables"]


def note_widened(control: ObjectStore, plan: Plan, found: WidenedTypes) -> None:
    """Note widened types, which the next batch applies; repair what they stopped or quarantined.

    A table that stopped because of a widened column reads its gap. Quarantined events are replayed:
    only those that now fit are appended.
    """
    if not found:
        return
    stored = control.read(WIDENED)
    known = {} if stored is None else stored.content["tables"]
    tables = {name: {**known.get(name, {}), **found.get(name, {})} for name in {*known, *found}}
    control.write(WIDENED, {"tables": tables})
    for table in plan.tables:
        if table.name in found and table.delivery == "stream":
            request_resume(control, table.name, columns_changed=True)
            request_replay(control, table.name)
