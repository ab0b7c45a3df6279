"""Columns of a running lake that follow a widened type of the source (`widened_columns: widen`)."""

from __future__ import annotations

from dataclasses import replace

from cdclake.errors import InputError
from cdclake.iceberg.widening import with_widened
from cdclake.jobs.control.widened import note_widened
from cdclake.jobs.runtime.source import source_tables
from cdclake.local.lake.lake import LakeState, LocalLake
from cdclake.postgres.widened import find_widened


def follow_source(lake: LocalLake) -> LocalLake:
    """Widen the lake's columns as the source's; return the lake with the types from now on.

    The stream applies them before its next batch, and the commands know them from the lake's state.
    A source that does not answer changes nothing.
    """
    try:
        found = find_widened(lake.plan, source_tables(lake.dsn, lake.plan))
    except InputError:
        return lake
    if not found:
        return lake
    note_widened(lake.control, lake.plan, found)
    plan = with_widened(lake.plan, found)
    stored = LakeState.load(lake.home)
    if stored.plan:  # none before the first `up` has ended
        replace(stored, plan=plan.to_json()).save(lake.home)
    return replace(lake, plan=plan, state=replace(lake.state, plan=plan.to_json()))
