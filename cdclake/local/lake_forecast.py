"""Forecast of `up` with a pipeline file, for `cdclake plan`; nothing is changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cdclake.local.joining_tables import refuse_without_sweep
from cdclake.local.lake import stack
from cdclake.local.lake.connector_offsets import SET_BACK, are_ahead
from cdclake.local.lake.lake import LakeState, describe_lake, running_source
from cdclake.local.lake.refused_sources import (
    refuse_another_source,
    refuse_without_tables,
    without_own,
)
from cdclake.local.lake.source_relations import check_relations
from cdclake.local.lake.source_tls import refuse_options, secured
from cdclake.local.lake_continuation import compare_plans, continued
from cdclake.local.operations_backend import local_operations
from cdclake.local.process.home import Home
from cdclake.local.puts.abandoned_records import refuse_to_abandon, refuse_to_leave
from cdclake.local.source_forecast import adapted, ask_source
from cdclake.plan import Plan
from cdclake.plan_diff import PlanDiff
from cdclake.plan_effects import forecast
from cdclake.rereading import refuse_rereading


def forecast_up(
    home: Home,
    plan: Plan,
    file: str,
    dsn: str | None,
    patterns: tuple[str, ...],
) -> dict[str, Any]:
    """Return the effects of `up FILE` on this home's lake.

    The source is asked if the lake runs, if its source is external, or with a DSN.

    Raises:
        InputError: if `up` would refuse the file, or the source does not answer
    """
    given = dsn
    state, dsn = _state(home, plan, dsn)
    before = Plan.from_json(state.plan) if state.plan else None
    if before is not None:
        _refuse_abandoning(home, state, plan)
        plan, _ = continued(state, plan, file)
    own = compare_plans(state, plan)
    asked = given if dsn is None and _runs(home) else dsn  # the home's own may be down
    where, embedded = _source(home, state, asked), dsn is None and not state.external
    source = ask_source(where, plan, patterns, embedded=embedded, is_first=own.is_first)
    change, findings = adapted(
        own, source, streamed=state.epoch > 0, to_resync=_to_resync(home, state, own)
    )
    if not findings.new_epoch and (reason := _epoch_reason(home, state)):
        change = change.all_snapshotted()
        findings = replace(findings, new_epoch=reason)
    if change.by_signal:
        _refuse_rejoining(home, replace(state, plan=plan.to_json()), own)
        refuse_rereading(before, own.adapted(source.renamed, ()))
    compared_with = f"the lake in {home.path}" if before else ""
    effects = forecast(before, plan, change, findings)
    answer = {"ok": True, "target": "local", "compared_with": compared_with, **effects}
    return source.completed(answer)


def _state(home: Home, plan: Plan, dsn: str | None) -> tuple[LakeState, str | None]:
    """Return the lake's state and DSN, unless `up` refuses the source or a file without tables."""
    state = LakeState.load(home)
    if dsn is not None:
        refuse_options(dsn)
    dsn = without_own(home, state, dsn, plan)
    refuse_another_source(home, state, dsn)
    refuse_without_tables(state, plan, dsn)
    return state, dsn


def _source(home: Home, state: LakeState, dsn: str | None) -> str | None:
    if dsn is not None:
        return secured(dsn)
    if state.external:
        return secured(home.secret("source_dsn"))
    return running_source(home)[0] if state.database and _runs(home) else None


def _refuse_abandoning(home: Home, state: LakeState, plan: Plan) -> None:
    """Raise InputError if records would be abandoned; only a running lake has those in its AWS."""
    refuse_to_leave(home, state, plan)
    if _runs(home):
        refuse_to_abandon(home, state, plan)


def _refuse_rejoining(home: Home, state: LakeState, own: PlanDiff) -> None:
    """Raise InputError for a table of Firehose that joins again; only a running lake has its rows.

    `own`: the difference that the file makes.
    """
    if state.epoch and _runs(home):
        refuse_without_sweep(describe_lake(home, state), own)


def _to_resync(home: Home, state: LakeState, change: PlanDiff) -> frozenset[str]:
    """Return the tables whose relations have changed; only a running lake has its records."""
    if change.is_first or not state.epoch or not _runs(home):
        return frozenset()
    lake = describe_lake(home, state)
    reading = local_operations(lake).backend.tables_being_read()
    return check_relations(lake, change.kept).to_resync - reading


def _epoch_reason(home: Home, state: LakeState) -> str:
    """Return why `up` begins an epoch, although the source has the slot with its WAL; or ""."""
    if state.loading:
        return "the bulk load of the last one has not finished"
    is_known = state.epoch > 0 and _runs(home)
    return SET_BACK if is_known and are_ahead(describe_lake(home, state)) else ""


def _runs(home: Home) -> bool:
    """Check whether the lake is up and each of its components runs."""
    parts = stack.components(home)
    return bool(parts) and all(part["state"] == "running" for part in parts)
