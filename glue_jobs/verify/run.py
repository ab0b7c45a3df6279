"""Steps of `verify`: snapshot, marker, first pass, rounds, report."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence

from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.runtime.source import connect
from cdclake.jobs.verify import source_rows
from cdclake.jobs.verify.compared_rows import LakeEngine
from cdclake.jobs.verify.deep_comparison import compare_deep
from cdclake.jobs.verify.first_pass import Sides, sides_of
from cdclake.jobs.verify.lake_rows import DuckEngine
from cdclake.jobs.verify.report import Report, TableComparison
from cdclake.jobs.verify.rounds import Open, Wait
from cdclake.jobs.verify.source_rows import PostgresRows
from cdclake.jobs.verify.table_results import comparable, first_passes, settle_tables
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
    engine: LakeEngine | None = None,
) -> Report:
    """Compare these tables of the source row by row with their `_current` views in the lake.

    `wait` is `CatchUp.wait`. The source is read from one snapshot, and the lake after everything
    written before has arrived. Differing keys are then read again while both sides change. `deep`
    compares each table's state, changelog and history. `quarantined` counts events by table. Keys
    that differ only by events that a rule withholds are `withheld`. `engine`: DuckDB if None.
    """
    started = time.monotonic()
    engine = DuckEngine(reader) if engine is None else engine
    salt = salt if plan.is_salted else ""
    quarantined = functools.cache(quarantined)  # first called when all keys are decided
    with source_rows.snapshot(dsn, salt) as source:
        sides, broken = comparable(tables, lambda each: sides_of(each, plan, source, engine))
        late = wait(tables, lambda: None)
        with engine.open([each.table for each in sides]) as lake:
            passes, seconds = first_passes(sides, PostgresRows(source), lake, sample)
    with source_rows.session(dsn, salt) as source:
        explain, rows = _withholding(reader, quarantined), PostgresRows(source)
        reports, rounds = settle_tables(sides, passes, late, rows, engine, wait, explain)
    reports |= broken
    for name, omitted in _omitted(dsn, tables).items():
        reports[name].omitted_columns = list(omitted)
        reports[name].seconds = seconds.get(name, 0.0)
        reports[name].quarantined = quarantined().get(name, 0)
    _add_deep(reports, sides if deep else (), reader)
    found, took = [reports[table.name] for table in tables], round(time.monotonic() - started, 2)
    return Report(tables=found, reader=engine.name, sample=sample, rounds=rounds, seconds=took)


def _withholding(
    reader: Reader, quarantined: Callable[[], Mapping[str, int]]
) -> Callable[[Open], None]:
    """Return a function that marks a table's keys whose events a rule withholds."""

    def explain(table: Open) -> None:
        if quarantined().get(table.sides.table.name):
            mark_withheld(table, reader)

    return explain


def _add_deep(
    reports: Mapping[str, TableComparison], sides: Sequence[Sides], reader: Reader
) -> None:
    """Compare each table's state, changelog and history with each other."""
    for each in sides:
        with reader.open([each.table], rebuilt=True) as lake:
            reports[each.table.name].deep = compare_deep(lake, each.table)


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
