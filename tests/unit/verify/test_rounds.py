"""Results of tables when a wait of the rounds of `verify` gives one of them up, or fails."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from cdclake.errors import ComponentFailed
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.verify import rounds
from cdclake.jobs.verify.first_pass import FirstPass, Sides
from cdclake.jobs.verify.mismatches import Mismatches
from cdclake.jobs.verify.not_arrived import NotArrived
from cdclake.jobs.verify.report import TableComparison
from cdclake.jobs.verify.table_results import settle_tables
from cdclake.plan import Delivery, Table
from cdclake.verify.columns import compared_columns
from cdclake.verify.compare import Row
from cdclake.verify.statements import Comparable
from tests.unit.verify.lakes import make_plan, make_table

ROW = Row(1, "1", ("1", "7", "B"))
NAMES = ("lost", "moving", "quiet")
TABLES = {name: make_table(name=name) for name in NAMES}


class Rows:
    """One side of the comparison: the rows of each table."""

    name, dialect = "duckdb", DUCKDB

    def __init__(self, **rows: list[Row]) -> None:
        self.rows = rows

    def rows_of(self, comparable: Comparable, _: Iterable[Any]) -> list[Row]:
        return self.rows[comparable.relation]

    def incomplete(self, *_: Any) -> Iterator[Row]:
        return iter(())

    @contextmanager
    def open(self, _: Collection[Table]) -> Iterator[Rows]:
        yield self


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "_PAUSE_S", 0.0)


Outcome = Mapping[str, str] | ComponentFailed


def compare(
    *outcomes: Outcome,
    stopped: Mapping[str, str] | None = None,
    arrives_in: int = 1,
    moving: Delivery = "stream",
) -> tuple[dict[str, TableComparison], int]:
    """Compare a table whose row is lost, one whose row arrives in a round, and an equal one.

    Each wait of the rounds has the next of these outcomes, and those after them the last. A round
    has a wait for each kind of delivery, first for that of the lost row.
    """
    source: Any = Rows(lost=[ROW], moving=[ROW], quiet=[ROW])
    lake: Any = Rows(lost=[], moving=[], quiet=[ROW])
    waits = iter(range(len(outcomes) + rounds.MAX_ROUNDS))
    tables = TABLES | {"moving": replace(TABLES["moving"], delivery=moving)}

    def wait(tables: Collection[Table], _: Callable[[], None]) -> Mapping[str, NotArrived]:
        number = next(waits)
        if number + 1 >= arrives_in:
            lake.rows["moving"] = [ROW]
        outcome = outcomes[min(number, len(outcomes) - 1)]
        if isinstance(outcome, ComponentFailed):
            raise outcome
        names = {table.name for table in tables}
        return {name: NotArrived(why) for name, why in outcome.items() if name in names}

    sides = [_sides(table) for table in tables.values()]
    passes = {
        name: FirstPass(
            source_rows=1,
            lake_rows=len(lake.rows[name]),
            compared_rows=1,
            candidates=Mismatches([] if name == "quiet" else [ROW.place]),
        )
        for name in NAMES
    }
    first = {name: NotArrived(why, is_stopped=True) for name, why in (stopped or {}).items()}
    return settle_tables(sides, passes, first, source, lake, wait, lambda _: None)


def _sides(table: Table) -> Sides:
    columns = compared_columns(table, make_plan(table), {})
    postgres, duckdb = (
        Comparable(engine, table.name, columns) for engine in ("postgres", "duckdb")
    )
    return Sides(table, postgres, duckdb, ())


def errors(found: Mapping[str, TableComparison]) -> dict[str, str | None]:
    return {name: table.error for name, table in found.items()}


def test_table_that_a_later_wait_gives_up_has_the_reason() -> None:
    found, _ = compare({"lost": "1 record has not arrived"})
    assert found["lost"].state == "streaming"
    assert errors(found) == {"lost": "1 record has not arrived", "moving": None, "quiet": None}
    assert found["lost"].missing == 1
    assert [table.ok for table in found.values()] == [False, True, True]


def test_failed_wait_keeps_the_results_of_the_others() -> None:
    late = ComponentFailed("the lake was behind the source", "wait longer with --wait")
    found, number = compare(late)
    assert errors(found) == {"lost": str(late), "moving": None, "quiet": None}
    assert (found["lost"].unsettled, found["lost"].ok) == (1, False)
    assert number == 1, "a further wait would take as long again"


@pytest.mark.parametrize("moving", ["poll", "firehose"])
def test_failed_wait_for_the_stream_concerns_no_other_delivery(moving: Delivery) -> None:
    late = ComponentFailed("the lake was behind the source", "wait longer with --wait")
    found, number = compare(late, {}, moving=moving, arrives_in=99)
    assert errors(found) == {"lost": str(late), "moving": None, "quiet": None}
    assert (found["moving"].missing, number) == (1, 2)
    found, _ = compare({}, late, {}, moving=moving, arrives_in=99)
    assert errors(found) == {"lost": None, "moving": str(late), "quiet": None}
    assert (found["lost"].missing, found["moving"].unsettled) == (1, 1)


def test_reason_counts_until_a_wait_for_the_table_succeeds() -> None:
    found, _ = compare({"lost": "no poll has read the table"}, {})
    assert errors(found) == dict.fromkeys(NAMES)
    assert found["lost"].missing == 1


def test_reason_of_a_table_that_is_equal_is_dropped() -> None:
    found, _ = compare({"lost": "late", "moving": "late"})
    assert errors(found) == {"lost": "late", "moving": None, "quiet": None}
    found, _ = compare({"moving": "late"}, arrives_in=99)
    assert errors(found) == {"lost": None, "moving": "late", "quiet": None}


def test_reason_of_the_first_wait_is_kept() -> None:
    stopped = {"lost": "columns differ", "quiet": "columns differ"}
    found, _ = compare({"lost": "late"}, stopped=stopped)
    assert [found[name].state for name in NAMES] == ["stopped", "streaming", "stopped"]
    assert errors(found) == {"lost": "columns differ", "moving": None, "quiet": "columns differ"}
