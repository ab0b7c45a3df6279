"""`verify` from beginning to end: snapshot, marker, first pass, rounds, report."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from cdclake.errors import InputError
from cdclake.plan import Plan, Table
from cdclake.postgres.published import omitted_columns
from local.reader.duck import Reader
from local.source import connect, read_catalog
from local.verify import source_rows
from local.verify.first_pass import FirstPass, Sides, first_pass, sides_of
from local.verify.report import Report, TableReport
from local.verify.rounds import Open, Wait, examples, settle


def verify_tables(
    plan: Plan,
    tables: Sequence[Table],
    *,
    dsn: str,
    salt: str,
    reader: Reader,
    wait: Wait,
    sample: int | None = None,
) -> Report:
    """Compare these tables of the source with their `_current` in the lake, row for row.

    `wait` is `Arrival.wait`. The source is read from one snapshot, the lake once everything of
    before has arrived; keys that differ then are read again while both go on.
    """
    started = time.monotonic()
    with source_rows.snapshot(dsn, salt) as source:
        sides = [sides_of(table, plan, source) for table in tables]
        stopped = wait(tables)
        passes, seconds = {}, {}
        with reader.open(tables) as lake:
            for each in sides:
                begun = time.monotonic()
                passes[each.table.name] = first_pass(each, source, lake, sample)
                seconds[each.table.name] = round(time.monotonic() - begun, 2)
    opened = [Open(each, passes[each.table.name].candidates) for each in sides]
    with ExitStack() as closing, source_rows.session(dsn, salt) as source:
        for table in opened:
            closing.callback(table.candidates.close)
        rounds = settle(opened, source, reader, wait)
        wrong = [table for table in opened if table.candidates.examples(1)]
        reports = {
            each.table.name: _report(each, passes[each.table.name], stopped) for each in sides
        }
        if wrong:
            with reader.open([table.sides.table for table in wrong]) as lake:
                for table in wrong:
                    reports[table.sides.table.name].first = examples(table, source, lake)
    for name, omitted in _omitted(dsn, tables).items():
        reports[name].omitted_columns = list(omitted)
        reports[name].seconds = seconds[name]
    took = round(time.monotonic() - started, 2)
    return Report(tables=[*reports.values()], sample=sample, rounds=rounds, seconds=took)


def _report(sides: Sides, passed: FirstPass, stopped: Mapping[str, str]) -> TableReport:
    table, found = sides.table, passed.candidates
    error = stopped.get(table.name)
    return TableReport(
        table=table.name,
        source=table.source,
        source_rows=passed.source_rows,
        lake_rows=passed.lake_rows,
        compared_rows=passed.compared_rows,
        missing=found.count("missing"),
        extra=found.count("extra"),
        different=found.count("different"),
        unsettled=found.count("unsettled"),
        state="streaming" if error is None else "stopped",
        error=error,
    )


def _omitted(dsn: str, tables: Sequence[Table]) -> dict[str, tuple[str, ...]]:
    with connect(dsn) as connection:
        wanted = {(table.schema, table.table) for table in tables}
        actual = {found.id: found for found in read_catalog(connection, tables=wanted)}
    return {
        table.name: omitted_columns(table, actual[table.schema, table.table])
        if (table.schema, table.table) in actual
        else ()
        for table in tables
    }


def chosen_tables(plan: Plan, name: str | None) -> tuple[Table, ...]:
    """The table that `--table` names in the lake's or the source's way, or all of them."""
    if name is None:
        return plan.tables
    try:
        return (plan.table(name),)
    except KeyError:
        known = ", ".join(table.name for table in plan.tables)
        raise InputError(f"the lake has no table {name!r}", f"its tables are {known}") from None
