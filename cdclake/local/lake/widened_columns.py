"""Check of the source's columns: widened types are followed, undeclared columns noted."""

from __future__ import annotations

from dataclasses import replace

from cdclake.errors import InputError
from cdclake.iceberg.widening import WidenedTypes, with_widened
from cdclake.jobs.runtime.source import source_tables
from cdclake.local.lake.lake import LakeState, LocalLake
from cdclake.local.process.home import Home
from cdclake.plan import Plan
from cdclake.postgres.new_columns import find_new_columns
from cdclake.postgres.widened import find_widened
from cdclake.source_notes import note_new_columns, note_widened


def follow_source(lake: LocalLake) -> LocalLake:
    """Widen the lake's columns as the source's; return the lake with the types from now on.

    The stream applies them before its next batch, and the commands know them from the lake's state.
    Before that batch it also stops the tables with undeclared columns, under `new_columns: stop`.
    A source that does not answer changes nothing. While another command changes the lake, the state
    is left to it: the next command that finds the wider types stores them.
    """
    try:
        actual = source_tables(lake.dsn, lake.plan)
    except InputError:
        return lake
    note_new_columns(lake.control, lake.plan, find_new_columns(lake.plan, actual))
    found = find_widened(lake.plan, actual)
    if not found:
        return lake
    note_widened(lake.control, lake.plan, found)
    with lake.home.changing_if_free() as is_held:
        if is_held:
            _store(lake.home, found)
    plan = with_widened(lake.plan, found)
    return replace(lake, plan=plan, state=replace(lake.state, plan=plan.to_json()))


def _store(home: Home, found: WidenedTypes) -> None:
    """Widen the stored plan, which may be newer than the one that the source was compared with."""
    stored = LakeState.load(home)
    if stored.plan:  # none before the first `up` has ended
        plan = with_widened(Plan.from_json(stored.plan), found)
        replace(stored, plan=plan.to_json()).save(home)
