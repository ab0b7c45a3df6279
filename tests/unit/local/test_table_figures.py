"""Figures of tables of which some are not readable yet."""

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from cdclake import naming
from cdclake.local.reader import table_figures
from cdclake.plan import Table


def table(name: str) -> Table:
    return Table(schema="s", table=name, name=name, topic=name, key=(), columns=())


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Any:
    plan = SimpleNamespace(all_tables=(table("a"), table("b"), table("new")), lake_database="l")
    opened: list[tuple[str, ...]] = []
    made = ["a", "a_changes", "b", "b_changes", naming.QUARANTINE]

    @contextmanager
    def session(tables: Any, plain: Any = ()) -> Any:
        opened.append((*(each.name for each in tables), *plain))
        if any(each.name == "b" for each in tables):
            raise duckdb.BinderException("no column x")
        row = SimpleNamespace(fetchone=lambda: (3,), fetchall=lambda: [("a", 2), ("b", 1)])
        yield SimpleNamespace(execute=lambda _: row)

    reader = SimpleNamespace(open=session, catalog=SimpleNamespace(load=lambda _: None))
    monkeypatch.setattr(table_figures, "lake_reader", lambda _: reader)
    monkeypatch.setattr(table_figures, "_made", lambda _: made)
    monkeypatch.setattr(table_figures, "_freshness", lambda *_: None)
    return SimpleNamespace(plan=plan, opened=opened, made=made)


def test_a_table_that_waits_for_a_column_hides_no_other(lake: Any) -> None:
    found = table_figures.table_figures(lake)
    assert (found["a"]["live_rows"], found["a"]["quarantined"]) == (3, 2)
    assert found["b"]["live_rows"] is found["b"]["quarantined"] is None
    assert found["new"]["changes_rows"] is None


def test_the_quarantine_is_read_without_tables_that_are_not_made(lake: Any) -> None:
    table_figures.table_figures(lake)
    assert lake.opened[-1] == (naming.QUARANTINE,)
    lake.made.remove(naming.QUARANTINE)
    lake.opened.clear()
    table_figures.table_figures(lake)
    assert (naming.QUARANTINE,) not in lake.opened
