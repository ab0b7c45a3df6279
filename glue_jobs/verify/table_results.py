"""Result of each table: its first pass, then its differing keys until they are decided."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from cdclake.activity import Advance, step
from cdclake.errors import InputError
from cdclake.jobs.verify.compared_rows import LakeEngine, LakeRows, SourceRows
from cdclake.jobs.verify.first_pass import FirstPass, Sides, first_pass
from cdclake.jobs.verify.not_arrived import NotArrived
from cdclake.jobs.verify.report import Example, TableComparison
from cdclake.jobs.verify.rounds import Open, Wait, examples, mark_incomplete, settle
from cdclake.plan import Table


def comparable(
    tables: Sequence[Table], sides_of: Callable[[Table], Sides]
) -> tuple[list[Sides], dict[str, TableComparison]]:
    """Return both sides of the tables, and the results of those that cannot be compared."""
    sides: list[Sides] = []
    broken: dict[str, TableComparison] = {}
    for table in tables:
        try:
            sides.append(sides_of(table))
        except InputError as error:
            broken[table.name] = TableComparison.failed(table, str(error))
    return sides, broken


def first_passes(
    sides: Sequence[Sides], source: SourceRows, lake: LakeRows, sample: int | None
) -> tuple[dict[str, FirstPass], dict[str, float]]:
    """Compare each table once; return the results and seconds by table."""
    passes: dict[str, FirstPass] = {}
    seconds: dict[str, float] = {}
    with step("compare the rows") as shown:
        for number, each in enumerate(sides):
            begun, name = time.monotonic(), each.table.name
            rows = sum(passed.source_rows for passed in passes.values())
            so_far = f"{name}, after {rows:,} rows"
            shown.note(Advance(done=number, total=len(sides), unit="tables", now=so_far))
            with source.locks_released():
                passes[name] = first_pass(each, source, lake, sample)
            seconds[name] = round(time.monotonic() - begun, 2)
        shown.note(Advance(done=len(sides), total=len(sides), unit="tables"))
    return passes, seconds


def settle_tables(
    sides: Sequence[Sides],
    passes: Mapping[str, FirstPass],
    late: Mapping[str, NotArrived],
    source: SourceRows,
    engine: LakeEngine,
    wait: Wait,
    explain: Callable[[Open], None],
) -> tuple[dict[str, TableComparison], int]:
    """Decide the differing keys, and return the results by table and the number of rounds.

    `late` has the tables that may have lacked changes after the first wait. Later waits count only
    for tables that still have keys: the others are equal. `explain` marks the keys of a table whose
    difference has a reason that the engine does not know.
    """
    opened = [Open(each, passes[each.table.name].candidates) for each in sides]
    with ExitStack() as closing:
        for table in opened:
            closing.callback(table.candidates.close)
        with step("read again what has changed meanwhile"):
            rounds, later = settle(opened, source, engine, wait)
        _mark_incomplete(opened, source, engine)
        for table in opened:
            if table.candidates.differing_hashes():
                explain(table)
        shown = _examples(opened, source, engine)
        waits = {name: found for name, found in later.items() if name in shown} | dict(late)
        reports = {
            name: _report(each, passes[name], waits.get(name), shown.get(name, []))
            for name, each in zip(passes, sides, strict=True)
        }
    return reports, rounds


def _mark_incomplete(opened: Sequence[Open], source: SourceRows, engine: LakeEngine) -> None:
    lacking = [table for table in opened if table.candidates.lacking_values()]
    if not lacking:
        return
    with engine.open([table.sides.table for table in lacking]) as lake:
        for table in lacking:
            mark_incomplete(table, source, lake)


def _examples(
    tables: Sequence[Open], source: SourceRows, engine: LakeEngine
) -> dict[str, list[Example]]:
    """Return some differing keys of each table, read again on both sides."""
    wrong = [table for table in tables if table.candidates.examples(1)]
    if not wrong:
        return {}
    with engine.open([table.sides.table for table in wrong]) as lake:
        return {table.sides.table.name: examples(table, source, lake) for table in wrong}


def _report(
    sides: Sides, passed: FirstPass, late: NotArrived | None, first: list[Example]
) -> TableComparison:
    """Build the table's result; `late` has the reason if the table may have lacked changes."""
    table, found = sides.table, passed.candidates
    error = None if late is None else late.reason
    if error is None and sides.gone:
        error = f"the source no longer has the column {', '.join(map(repr, sides.gone))}"
    return TableComparison(
        table=table.name,
        source=table.source,
        delivery=table.delivery,
        source_rows=passed.source_rows,
        lake_rows=passed.lake_rows,
        compared_rows=passed.compared_rows,
        missing=found.count("missing"),
        extra=found.count("extra"),
        different=found.count("different"),
        unsettled=found.count("unsettled"),
        withheld=found.count("withheld"),
        incomplete=found.count("incomplete"),
        first=first,
        state="stopped" if late is not None and late.is_stopped else "streaming",
        error=error,
        late=late is not None and not late.is_stopped,
    )
