"""Notes that a check of the source leaves for the jobs: widened types and undeclared columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from cdclake.control_objects import NEW_COLUMNS, WIDENED
from cdclake.iceberg.widening import WidenedTypes, advise_rebuild
from cdclake.plan import Plan, Table
from cdclake.stream_requests import ControlStore, request_replay, request_resume

_UNREQUESTED = "unrequested"  # tables of a note whose requests may not have been written
NewColumns = Mapping[str, Mapping[str, str | None]]  # type by lake table and source column


def read_widened(control: ControlStore) -> WidenedTypes:
    """Return the types that were noted, by table and column."""
    stored = control.read(WIDENED)
    return {} if stored is None else stored.content["tables"]


def note_widened(control: ControlStore, plan: Plan, found: WidenedTypes) -> None:
    """Note widened types, which the next batch applies; repair what they stopped or quarantined.

    A table that stopped because of a widened column reads its gap. Quarantined events are replayed:
    only those that now fit are appended.
    """
    noted = _read_note(control, WIDENED)
    known = noted["tables"]
    tables = {name: {**known.get(name, {}), **found.get(name, {})} for name in {*known, *found}}

    def repair(table: str) -> None:
        request_resume(control, table, columns_changed=True)
        request_replay(control, table)

    changed = _streamed(plan, {*found, *noted.get(_UNREQUESTED, ())})
    _write_note(control, WIDENED, noted, tables, changed, repair)


def widening_warnings(plan: Plan, found: WidenedTypes) -> Iterator[str]:
    """Yield a warning for each table with widened types, which the plan does not have yet."""
    delivered = {table.name for table in plan.tables if table.delivery == "firehose"}
    for table, types in found.items():
        changed = ", ".join(f"{column} to {kind}" for column, kind in types.items())
        warning = f"{table}: the source has widened {changed}"
        if "athena" in plan.readers:
            warning += (
                f"; run `cdclake views FILE --target aws --table {table}`: until then its views in"
                " Athena have NULL for values beyond the old type"
            )
        elif "trino" in plan.readers:
            warning += (
                "; write it into the pipeline file and run what `cdclake views FILE --table"
                f" {table}` prints: until then its views in Trino have NULL for values beyond the"
                " old type"
            )
        if advice := advise_rebuild(plan, plan.table(table), types):
            warning += f"; {advice}"
        if table in delivered:
            warning += (
                "; when the stream's next batch has widened its changelog, Firehose's function"
                " decodes larger values: run `cdclake redrive` then, for those that it refused"
            )
        yield warning


def read_new_columns(control: ControlStore, plan: Plan) -> dict[str, dict[str, str | None]]:
    """Return the noted columns that the plan does not declare, by streamed table.

    They are why these tables stop: a plan with `new_columns: stop` only.
    """
    stored = control.read(NEW_COLUMNS) if plan.new_columns == "stop" else None
    noted = {} if stored is None else stored.content["tables"]
    found = {
        table.name: _undeclared(table, noted.get(table.name, {}))
        for table in plan.tables
        if table.delivery == "stream"
    }
    return {name: columns for name, columns in found.items() if columns}


def note_new_columns(control: ControlStore, plan: Plan, found: NewColumns) -> None:
    """Note the undeclared columns of the source, which stop their tables before the next batch.

    A table that they stopped reads its gap once it has none: they were declared, excluded or
    dropped.
    """
    noted = _read_note(control, NEW_COLUMNS)
    wanted = found if plan.new_columns == "stop" else {}
    tables = {name: dict(columns) for name, columns in wanted.items()}

    def resume(table: str) -> None:
        request_resume(control, table, columns_changed=True)

    changed = _streamed(plan, {*noted["tables"], *noted.get(_UNREQUESTED, ())} - wanted.keys())
    _write_note(control, NEW_COLUMNS, noted, tables, changed, resume)


def _read_note(control: ControlStore, name: str) -> dict[str, Any]:
    stored = control.read(name)
    return {"tables": {}} if stored is None else stored.content


def _streamed(plan: Plan, names: Collection[str]) -> list[str]:
    return [t.name for t in plan.tables if t.name in names and t.delivery == "stream"]


def _write_note(
    control: ControlStore,
    name: str,
    noted: Mapping[str, Any],
    tables: Mapping[str, Mapping[str, str | None]],
    changed: Collection[str],
    request: Callable[[str], None],
) -> None:
    """Write a note, and then the requests for the tables that it changes.

    Until these are written, the note lists the tables: if this call dies, the next one requests
    them.
    """
    content = {"tables": dict(tables)}
    if changed:
        control.write(name, {**content, _UNREQUESTED: list(changed)})
        for table in changed:
            request(table)
    if changed or content != noted:
        control.write(name, content)


def _undeclared(table: Table, noted: Mapping[str, str | None]) -> dict[str, str | None]:
    known = {*table.excluded, *(column.source for column in table.columns)}
    return {column: kind for column, kind in noted.items() if column not in known}
