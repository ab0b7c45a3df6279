"""Effects of a pipeline file that is applied: on tables and data, infrastructure and settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from cdclake.column_changes import ColumnChange, column_changes
from cdclake.column_problems import predecessor
from cdclake.derived_table import DerivedTable
from cdclake.iceberg.widening import advise_rebuild, is_widening
from cdclake.plan import Plan, Table
from cdclake.plan_diff import PlanDiff
from cdclake.poll_definition import poll_definition

LOAD, LOAD_AGAIN, STOP = "load", "load again", "stop"
COLUMNS, SETTINGS, UNCHANGED = "columns", "settings", "unchanged"
REWRITE = "rewrite"
READ = (LOAD, LOAD_AGAIN)

# Fields of a plan by the key of the pipeline file.
_KEYS = {
    "source.snapshot.mode": "snapshot_mode",
    "source.format": "format",
    "source.registry": "registry",
    "source.compatibility": "compatibility",
    "lake.readers": "readers",
    "lake.history_days": "history_days",
    "lake.stream_readers_hours": "stream_readers_hours",
    "stream.trigger_seconds": "trigger_seconds",
    "stream.mode": "mode",
    "schedules": "schedules",
    "policies.not_representable": "not_representable",
    "policies.stop_table_after": "stop_table_after",
    "policies.oversized_records": "oversized_records",
    "policies.new_columns": "new_columns",
    "policies.widened_columns": "widened_columns",
}
# Parts of a plan that run by name, and what each is.
_PARTS = {
    "deliveries": "Firehose stream",
    "web_logs": "web logs",
    "puts": "put stream",
    "connectors": "connector",
    "copies": "Hudi copy",
}
_COLUMN_FIELDS = {"columns", "excluded"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFindings:
    """Reasons in the source to read tables again, as far as it could be asked."""

    new_epoch: str = ""  # why every table is read again; empty: no reason is known
    read_again: Mapping[str, str] = field(default_factory=dict)  # reason by `schema.table`


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEffect:
    """Effect on one table, or on a derived one."""

    source: str  # `schema.table`; empty for a derived table
    table: str
    effect: str
    reason: str = ""
    columns: tuple[ColumnChange, ...] = ()  # of a table that the lake has


def table_effects(
    before: Plan | None, after: Plan, change: PlanDiff, findings: SourceFindings
) -> list[TableEffect]:
    """Return the effect on each table of both plans, and on the derived ones that change."""
    stored = {table.source: table for table in before.all_tables} if before else {}
    effects = [_effect(t, stored.get(t.source), after, change, findings) for t in after.tables]
    effects += [_polled(table, stored.get(table.source), before, after) for table in after.polled]
    kept = {table.source for table in after.all_tables}
    effects += [
        TableEffect(source=t.source, table=t.name, effect=STOP, reason="its data stays in the lake")
        for t in stored.values()
        if t.source not in kept
    ]
    return [*effects, *_derived(before, after)]


def _effect(
    table: Table, stored: Table | None, after: Plan, change: PlanDiff, findings: SourceFindings
) -> TableEffect:
    effect, reason = _reading(table, stored, change, findings)
    if stored is None or effect == LOAD:
        return TableEffect(source=table.source, table=table.name, effect=effect, reason=reason)
    declared = _declaration(stored, table, effect, reason)
    advice = "" if effect else _advice(after, table, stored)
    return replace(declared, reason=f"{declared.reason}; {advice}") if advice else declared


def rebuild_advice(before: Plan, after: Plan, change: PlanDiff) -> dict[str, str]:
    """Return, by lake table, how its state gets values that a widened column had no room for.

    Tables that are read again need no advice.
    """
    stored = {table.source: table for table in before.tables}
    kept = [t for t in after.tables if t.source in stored and t not in change.lacking]
    found = {table.name: _advice(after, table, stored[table.source]) for table in kept}
    return {name: advice for name, advice in found.items() if advice}


def _advice(after: Plan, table: Table, stored: Table) -> str:
    widened = [
        column.name
        for column in table.columns
        if (old := predecessor(column, stored)) is not None
        and is_widening(old.column_type, column.column_type)
    ]
    return advise_rebuild(after, table, widened)


def _reading(
    table: Table, stored: Table | None, change: PlanDiff, findings: SourceFindings
) -> tuple[str, str]:
    if stored is None or change.is_first:
        return LOAD, "the lake does not have it"
    if findings.new_epoch:
        return LOAD_AGAIN, f"a new epoch begins: {findings.new_epoch}"
    if table in change.widened:
        known = {column.name for column in stored.columns}
        new = ", ".join(c.source for c in table.columns if c.name not in known)
        late = "a column was renamed before the file declared it, or dropped by an unfinished `up`"
        why = f"new columns: {new}" if new else late
        return LOAD_AGAIN, why
    if table in change.joining:
        return LOAD_AGAIN, findings.read_again.get(table.source, "it differs from the source")
    return "", ""


def _declaration(stored: Table, table: Table, effect: str = "", reason: str = "") -> TableEffect:
    """Return the effect of another declaration; `effect` and `reason` if rows are read again."""
    before, after = asdict(stored), asdict(table)
    changed = [name for name in after if before[name] != after[name]]
    settings = [name for name in changed if name not in _COLUMN_FIELDS]
    columns = column_changes(stored, table)
    reasons = [reason] if reason else []
    if not effect and len(changed) > len(settings):
        effect = COLUMNS
        reasons = [*([] if columns else ["columns in another order"]), "no row is read"]
    if settings:
        reasons.append(f"changed: {', '.join(settings)}")
    if "partition_by" in settings:
        reasons.append("the state keeps the partitions that it was created with")
    return TableEffect(
        source=table.source,
        table=table.name,
        effect=effect or (SETTINGS if settings else UNCHANGED),
        reason="; ".join(reasons),
        columns=tuple(columns),
    )


def _polled(table: Table, stored: Table | None, before: Plan | None, after: Plan) -> TableEffect:
    if before is None or stored is None:
        reason = "the first poll reads every row"
        return TableEffect(source=table.source, table=table.name, effect=LOAD, reason=reason)
    if stored.polling is None:
        return _declaration(stored, table, LOAD_AGAIN, "the first poll reads every row")
    if poll_definition(before, stored) != poll_definition(after, table):
        return _declaration(stored, table, LOAD_AGAIN, "the next poll reads every row")
    return _declaration(stored, table)


def _derived(before: Plan | None, after: Plan) -> Iterator[TableEffect]:
    """Yield the derived tables whose rows are computed from the lake, all of them."""
    stored = {derived.name: derived for derived in before.derived} if before else {}
    for derived in after.derived:
        known = stored.pop(derived.name, None)
        if known is None:
            yield _computed(derived.name, "it is new")
        elif _changes_catalog(known, derived):
            why = f"its format becomes {derived.format}; drop its table first, or rename it"
            yield _computed(derived.name, why)
        elif before is not None and before.definition_of(known) != after.definition_of(derived):
            yield _computed(derived.name, "its query, or a column that it may read, has changed")
    for name in stored:
        yield TableEffect(source="", table=name, effect=STOP, reason="its data stays in the lake")


def _changes_catalog(before: DerivedTable, after: DerivedTable) -> bool:
    """Check whether the table would leave or enter Iceberg, which a refresh refuses."""
    return before.format != after.format and "iceberg" in (before.format, after.format)


def _computed(name: str, why: str) -> TableEffect:
    return TableEffect(source="", table=name, effect=REWRITE, reason=f"{why}; from the lake's rows")


def infrastructure_effects(before: Plan | None, after: Plan) -> list[dict[str, str]]:
    """Return topics, streams and connectors that are added, removed or changed."""
    return [
        {"change": change, "kind": kind, "name": name}
        for kind, old, new in _parts(before, after)
        for name in {**old, **new}
        if (change := _change(old.get(name), new.get(name)))
    ]


def _parts(
    before: Plan | None, after: Plan
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    yield "topic", _topics(before), _topics(after)
    for name, kind in _PARTS.items():
        named = [
            {each.name: each for each in getattr(plan, name)} if plan else {}
            for plan in (before, after)
        ]
        yield kind, named[0], named[1]


def _topics(plan: Plan | None) -> dict[str, bool]:
    return {table.topic: True for table in plan.tables} if plan else {}


def _change(old: object, new: object) -> str:
    if old == new:
        return ""
    if old is None:
        return "add"
    return "remove" if new is None else "change"


def changed_settings(before: Plan | None, after: Plan) -> list[dict[str, Any]]:
    """Return the settings of the whole pipeline that differ, by their keys in the file."""
    if before is None:
        return []
    return [
        {"key": key, "before": getattr(before, name), "after": getattr(after, name)}
        for key, name in _KEYS.items()
        if getattr(before, name) != getattr(after, name)
    ]


def forecast(
    before: Plan | None, after: Plan, change: PlanDiff, findings: SourceFindings
) -> dict[str, Any]:
    """Return the effects as the answer of `cdclake plan` shows them, without sizes."""
    return {
        "by_resync": False,
        "unknown": [],
        "infrastructure": infrastructure_effects(before, after),
        "settings": changed_settings(before, after),
        "tables": [asdict(each) for each in table_effects(before, after, change, findings)],
    }
