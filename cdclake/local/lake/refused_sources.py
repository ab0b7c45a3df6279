"""Sources that a lake cannot go on with: `up` and `plan` refuse them."""

from __future__ import annotations

from cdclake.errors import InputError
from cdclake.local.lake.lake import LakeState
from cdclake.plan import Plan


def refuse_another_source(state: LakeState, dsn: str | None) -> None:
    """Raise InputError if the lake has streamed from its own PostgreSQL, and a source is given."""
    if dsn is not None and state.epoch and not state.external:
        raise InputError(
            "this lake streams from its own PostgreSQL, not from the given source",
            "use another CDCLAKE_HOME for the other source, or `cdclake down --purge` first",
        )


def refuse_without_tables(state: LakeState, plan: Plan, dsn: str | None) -> None:
    """Raise InputError if the lake streams tables or a source is given, and the plan reads none."""
    if plan.tables:
        return
    if state.epoch:
        raise InputError(
            "this lake streams tables, but the pipeline file has none",
            "add this section to the lake's file, or use another CDCLAKE_HOME for this one",
        )
    if dsn is not None and not plan.polled:
        raise InputError("the pipeline file has no tables to read from a source", "omit the source")
