"""What another engine answers is compared with DuckDB's rows; here DuckDB is both."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from cdclake import naming
from cdclake.iceberg.dialect import DUCKDB, Dialect
from cdclake.iceberg.incomplete_rows import incomplete_rows
from cdclake.jobs.verify.compared_rows import LakeRows
from cdclake.jobs.verify.engine_rows import EngineRows
from cdclake.jobs.verify.lake_rows import DuckEngine
from cdclake.jobs.verify.report import TableComparison
from cdclake.jobs.verify.view_rows import compare_engines
from cdclake.local.trino.trino_engine import TrinoEngine
from cdclake.plan import Column, Table
from tests.unit.verify.lakes import event, make_plan, make_table
from tests.unit.verify.small_reader import SmallReader

TABLE = make_table()
PLAN = make_plan(TABLE)
LOG = [event("c", 10 * n, 10 * n + 1, id=n, v=n, big="A") for n in range(1, 5)]


def compared(log: Any, of_engine: Any) -> TableComparison:
    """The result of a lake whose engine reads another log."""
    reader: Any = SmallReader(PLAN, log)
    engine: Any = DuckEngine(SmallReader(PLAN, of_engine))  # type: ignore[arg-type]
    [table] = compare_engines(reader, [TABLE], engine).tables
    return table


def test_equal_answers_are_equal() -> None:
    table = compared(LOG, LOG)
    assert table.ok and (table.source_rows, table.lake_rows) == (4, 4)


def test_what_the_engine_shows_otherwise_is_found() -> None:
    other = [*LOG[:2], {**LOG[2], "v": 9}, event("c", 50, 51, id=9, v=9)]
    table = compared(LOG, other)
    assert (table.missing, table.extra, table.different, table.ok) == (1, 1, 1, False)
    [example] = [each for each in table.first if each.kind == "different"]
    assert example.key == {"id": "3"} and example.columns == ["v"]


BORN = event("c", 60, 61, id=7, v=7, big="?")  # of a changed key, whose old one is not here


@dataclass(frozen=True)
class LackingEngine:
    """An engine whose view cannot look up the value of `BORN`."""

    reader: SmallReader
    name: str = "duckdb"
    dialect: Dialect = DUCKDB

    def relation(self, table: Table) -> str:
        return DuckEngine(self.reader).relation(table)  # type: ignore[arg-type]

    @contextmanager
    def open(self, tables: Collection[Table]) -> Iterator[LakeRows]:
        def listed(table: Table) -> str:
            return incomplete_rows(table, changes="t_changes", state="t", dialect=DUCKDB)

        with self.reader.open(tables) as session:
            yield EngineRows(lambda statement: session.execute(statement).fetchall(), listed)


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        pytest.param({}, (1, 0), id="only the value is lacking"),
        pytest.param({"v": 9}, (0, 1), id="another column differs, too"),
        pytest.param({naming.UNAVAILABLE: None}, (0, 1), id="the NULL was sent"),
    ],
)
def test_a_row_that_lacks_a_value_is_incomplete(
    shown: dict[str, Any], found: tuple[int, int]
) -> None:
    whole: Any = SmallReader(PLAN, [*LOG, {**BORN, naming.UNAVAILABLE: None, "big": "B"}])
    engine = LackingEngine(SmallReader(PLAN, [*LOG, {**BORN, **shown}]))
    [table] = compare_engines(whole, [TABLE], engine).tables
    assert (table.incomplete, table.different) == found
    assert table.ok == (found == (1, 0))
    assert [example.kind for example in table.first] == ["incomplete" if table.ok else "different"]


@dataclass(frozen=True)
class InventiveEngine(LackingEngine):
    """The engine, whose view shows a value where it should lack one."""

    @contextmanager
    def open(self, tables: Collection[Table]) -> Iterator[LakeRows]:
        with self.reader.open(tables) as session:
            yield EngineRows(
                lambda statement: session.execute(statement).fetchall(),
                lambda _: "SELECT 7 AS id, 'big' AS waits_for",
            )


@pytest.mark.parametrize(("value", "found"), [(None, (1, 0)), ("OTHER", (0, 1))])
def test_a_wrong_value_is_not_incomplete(value: str | None, found: tuple[int, int]) -> None:
    sent = {**BORN, naming.UNAVAILABLE: None}
    whole: Any = SmallReader(PLAN, [*LOG, {**sent, "big": "B"}])
    engine = InventiveEngine(SmallReader(PLAN, [*LOG, {**sent, "big": value}]))
    [table] = compare_engines(whole, [TABLE], engine).tables
    assert (table.incomplete, table.different) == found


@dataclass(frozen=True)
class ForgetfulEngine(LackingEngine):
    """The engine, which no longer has the row when the key has been decided."""

    opened: list[int] = field(default_factory=list)

    @contextmanager
    def open(self, tables: Collection[Table]) -> Iterator[LakeRows]:
        self.opened.append(1)
        decided = len(self.opened) > 3  # the first pass and two rounds
        reader = SmallReader(PLAN, LOG) if decided else self.reader
        with LackingEngine(reader).open(tables) as rows:
            yield rows


def test_a_row_that_the_engine_loses_is_not_incomplete() -> None:
    whole: Any = SmallReader(PLAN, [*LOG, {**BORN, naming.UNAVAILABLE: None, "big": "B"}])
    engine = ForgetfulEngine(SmallReader(PLAN, [*LOG, BORN]))
    [table] = compare_engines(whole, [TABLE], engine).tables
    assert (table.incomplete, table.different, table.ok) == (0, 1, False)


class Unasked(TrinoEngine):
    """An engine without a server: no table is left to be asked for."""

    @contextmanager
    def open(self, tables: Collection[Table]) -> Iterator[LakeRows]:
        assert not tables
        yield EngineRows(lambda _: [])


def test_a_key_that_an_engine_cannot_write_is_an_error_of_its_table() -> None:
    bits = Column(source="id", name="id", type="bit varying")
    table = replace(TABLE, columns=(bits, *TABLE.columns[1:]))
    plan = make_plan(table)
    reader: Any = SmallReader(plan, [])
    engine: Any = Unasked(None, plan)  # type: ignore[arg-type]
    [found] = compare_engines(reader, [table], engine).tables
    assert not found.ok and "trino cannot compare public.t by its key id" in (found.error or "")
