"""Notes that a check of the source leaves for the jobs: widened types and undeclared columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdclake.control_objects import NEW_COLUMNS, WIDENED
from cdclake.iceberg.widening import WidenedTypes, advise_rebuild
from cdclake.plan import Plan, Table
from cdclake.stream_requests import ControlStore, request_replay, request_resume

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
    if not found:
        return
    known = read_widened(control)
    tables = {name: {**known.get(name, {}), **found.get(name, {})} for name in {*known, *found}}
    control.write(WIDENED, {"tables": tables})
    for table in plan.tables:
        if table.name in found and table.delivery == "stream":
            request_resume(control, table.name, columns_changed=True)
            request_replay(control, table.name)


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
    stored = control.read(NEW_COLUMNS)
    noted = {} if stored is None else stored.content["tables"]
    wanted = found if plan.new_columns == "stop" else {}
    if noted == wanted:
        return
    control.write(NEW_COLUMNS, {"tables": {name: dict(found) for name, found in wanted.items()}})
    for table in plan.tables:
        if table.name in noted and table.name not in wanted:
            request_resume(control, table.name, columns_changed=True)


def _undeclared(table: Table, noted: Mapping[str, str | None]) -> dict[str, str | None]:
    known = {*table.excluded, *(column.source for column in table.columns)}
    return {column: kind for column, kind in noted.items() if column not in known}
