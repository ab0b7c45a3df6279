"""Steps of `verify`: snapshot, marker, first pass, rounds, report."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

import duckdb

from cdclake.activity import Advance, step
from cdclake.errors import InputError
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.runtime.source import Connection, connect
from cdclake.jobs.verify import source_rows
from cdclake.jobs.verify.deep_comparison import compare_deep
from cdclake.jobs.verify.first_pass import FirstPass, Sides, first_pass, sides_of
from cdclake.jobs.verify.report import Example, Report, TableComparison
from cdclake.jobs.verify.rounds import Open, Wait, examples, settle
from cdclake.jobs.verify.withheld_keys import mark_withheld
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
    deep: bool = False,
    quarantined: Callable[[], Mapping[str, int]] = dict,
) -> Report:
    """Compare these tables of the source row by row with their `_current` views in the lake.

    `wait` is `CatchUp.wait`. The source is read from one snapshot, and the lake after everything
    written before has arrived. Differing keys are then read again while both sides change. With
    `deep` each table's state, changelog and history are compared with each other too.
    `quarantined` counts the quarantined events by table. Keys that differ only because a rule
    withholds their events are counted as `withheld`.
    """
    started = time.monotonic()
    quarantined = functools.cache(quarantined)  # first called when all keys are decided
    with source_rows.snapshot(dsn, salt) as source:
        sides, broken = _comparable(tables, plan, source)
        stopped = wait(tables, lambda: None)
        with reader.open(tables) as lake:
            passes, seconds = _first_passes(sides, source, lake, sample)
    with source_rows.session(dsn, salt) as source:
        reports, rounds = _settled(sides, passes, stopped, source, reader, wait, quarantined)
    reports |= {each.table: each for each in broken}
    for name, omitted in _omitted(dsn, tables).items():
        reports[name].omitted_columns = list(omitted)
        reports[name].seconds = seconds.get(name, 0.0)
    for name in reports.keys() & (held := quarantined()).keys():
        reports[name].quarantined = held[name]
    _add_deep(reports, sides if deep else (), reader)
    found = [reports[table.name] for table in tables]
    return Report(tables=found, sample=sample, rounds=rounds, seconds=_since(started))


def _settled(
    sides: Sequence[Sides],
    passes: Mapping[str, FirstPass],
    stopped: Mapping[str, str],
    source: Connection,
    reader: Reader,
    wait: Wait,
    quarantined: Callable[[], Mapping[str, int]],
) -> tuple[dict[str, TableComparison], int]:
    """Decide the differing keys, and return the results by table and the number of rounds."""
    opened = [Open(each, passes[each.table.name].candidates) for each in sides]
    with ExitStack() as closing:
        for table in opened:
            closing.callback(table.candidates.close)
        with step("read again what has changed meanwhile"):
            rounds = settle(opened, source, reader, wait)
        for table in opened:
            if table.candidates.differing_hashes() and quarantined().get(table.sides.table.name):
                mark_withheld(table, reader)
        shown = _examples(opened, source, reader)
        reports = {
            name: _report(each, passes[name], stopped.get(name), shown.get(name, []))
            for name, each in zip(passes, sides, strict=True)
        }
    return reports, rounds


def _first_passes(
    sides: Sequence[Sides], source: Connection, lake: duckdb.DuckDBPyConnection, sample: int | None
) -> tuple[dict[str, FirstPass], dict[str, float]]:
    passes: dict[str, FirstPass] = {}
    seconds = {}
    with step("compare the rows") as shown:
        for number, each in enumerate(sides):
            begun, name = time.monotonic(), each.table.name
            rows = sum(passed.source_rows for passed in passes.values())
            so_far = f"{name}, after {rows:,} rows"
            shown.note(Advance(done=number, total=len(sides), unit="tables", now=so_far))
            passes[name] = first_pass(each, source, lake, sample)
            seconds[name] = _since(begun)
        shown.note(Advance(done=len(sides), total=len(sides), unit="tables"))
    return passes, seconds


def _add_deep(
    reports: Mapping[str, TableComparison], sides: Sequence[Sides], reader: Reader
) -> None:
    """Compare each table's state, changelog and history with each other."""
    for number, each in enumerate(sides):
        with (
            step(f"compare {each.table.name} with its changelog, {number + 1} of {len(sides)}"),
            reader.open([each.table], rebuilt=True) as lake,
        ):
            reports[each.table.name].deep = compare_deep(lake, each.table)


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
        withheld=found.count("withheld"),
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
    return plan.all_tables if name is None else (plan.table(name),)
