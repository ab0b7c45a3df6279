"""Steps of `verify`: snapshot, marker, first pass, rounds, report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack

from cdclake.errors import InputError
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.runtime.source import Connection, connect
from cdclake.jobs.verify import source_rows
from cdclake.jobs.verify.first_pass import FirstPass, Sides, first_pass, sides_of
from cdclake.jobs.verify.report import Example, Report, TableComparison
from cdclake.jobs.verify.rounds import Open, Wait, examples, settle
from cdclake.plan import Plan, Table
from cdclake.postgres.published import omitted_columns
from cdclake.postgres.source import read_catalog


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
    """Compare these tables of the source row by row with their `_current` views in the lake.

    `wait` is `CatchUp.wait`. The source is read from one snapshot, and the lake after everything
    written before has arrived. Differing keys are then read again while both sides change.
    """
    started = time.monotonic()
    passes: dict[str, FirstPass] = {}
    seconds: dict[str, float] = {}
    with source_rows.snapshot(dsn, salt) as source:
        sides, broken = _comparable(tables, plan, source)
        stopped = wait(tables, lambda: None)
        with reader.open(tables) as lake:
            for each in sides:
                begun, name = time.monotonic(), each.table.name
                passes[name] = first_pass(each, source, lake, sample)
                seconds[name] = _since(begun)
    opened = [Open(each, passes[each.table.name].candidates) for each in sides]
    reports = {each.table: each for each in broken}
    with ExitStack() as closing, source_rows.session(dsn, salt) as source:
        for table in opened:
            closing.callback(table.candidates.close)
        rounds = settle(opened, source, reader, wait)
        shown = _examples(opened, source, reader)
        for name, each in zip(passes, sides, strict=True):
            reports[name] = _report(each, passes[name], stopped.get(name), shown.get(name, []))
            reports[name].seconds = seconds[name]
    for name, omitted in _omitted(dsn, tables).items():
        reports[name].omitted_columns = list(omitted)
    found = [reports[table.name] for table in tables]
    return Report(tables=found, sample=sample, rounds=rounds, seconds=_since(started))


def _comparable(
    tables: Sequence[Table], plan: Plan, source: Connection
) -> tuple[list[Sides], list[TableComparison]]:
    """Return both sides of the tables, and the results of those that cannot be compared."""
    sides, broken = [], []
    for table in tables:
        try:
            sides.append(sides_of(table, plan, source))
        except InputError as error:
            reason = f"{error.message}; {error.remedy}"
            broken.append(TableComparison(table=table.name, source=table.source, error=reason))
    return sides, broken


def _since(begun: float) -> float:
    return round(time.monotonic() - begun, 2)


def _examples(
    tables: Sequence[Open], source: Connection, reader: Reader
) -> dict[str, list[Example]]:
    """Return some differing keys of each table, read again on both sides."""
    wrong = [table for table in tables if table.candidates.examples(1)]
    if not wrong:
        return {}
    with reader.open([table.sides.table for table in wrong]) as lake:
        return {table.sides.table.name: examples(table, source, lake) for table in wrong}


def _report(
    sides: Sides, passed: FirstPass, error: str | None, first: list[Example]
) -> TableComparison:
    """Build the table's result; `error` is the reason if the stream has stopped the table."""
    table, found = sides.table, passed.candidates
    state = "streaming" if error is None else "stopped"
    if error is None and sides.gone:
        error = f"the source no longer has the column {', '.join(map(repr, sides.gone))}"
    return TableComparison(
        table=table.name,
        source=table.source,
        source_rows=passed.source_rows,
        lake_rows=passed.lake_rows,
        compared_rows=passed.compared_rows,
        missing=found.count("missing"),
        extra=found.count("extra"),
        different=found.count("different"),
        unsettled=found.count("unsettled"),
        first=first,
        state=state,
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
    """Return the table of `--table`, given by its name in the lake or the source, or all tables."""
    return plan.tables if name is None else (plan.table(name),)
