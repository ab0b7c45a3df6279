"""Figures of tables of which some are not readable yet."""

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from cdclake import naming
from cdclake.errors import ComponentFailed, InputError
from cdclake.local.reader import table_figures
from cdclake.local.reader.figure_cache import FigureCache
from cdclake.plan import Table


def table(name: str) -> Table:
    return Table(schema="s", table=name, name=name, topic=name, key=(), columns=())


LACKING = InputError("b has no column 'x' yet", "wait for its next poll")


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    plan = SimpleNamespace(all_tables=(table("a"), table("b"), table("new")), lake_database="l")
    opened: list[tuple[str, ...]] = []
    names = ("a", "a_changes", "b", "b_changes", naming.QUARANTINE)
    made = {name: f"s3://b/{name}/1.json" for name in names}
    failing: dict[str, Exception] = {"b": LACKING}

    @contextmanager
    def session(tables: Any, plain: Any = (), tails: bool = False) -> Any:
        opened.append((*(each.name for each in tables), *plain))
        for each in tables:
            if each.name in failing:
                raise failing[each.name]
        row = SimpleNamespace(fetchone=lambda: (3,), fetchall=lambda: [("a", 2), ("b", 1)])
        yield SimpleNamespace(execute=lambda _: row)

    reader = SimpleNamespace(open=session, catalog=SimpleNamespace(load=lambda _: None))
    monkeypatch.setattr(table_figures, "lake_reader", lambda _: reader)
    monkeypatch.setattr(table_figures, "_made", lambda _: made)
    monkeypatch.setattr(table_figures, "_freshness", lambda *_: None)
    monkeypatch.setattr(table_figures, "_of_metadata", lambda *_: {"files": 2})
    home = SimpleNamespace(data=lambda name: tmp_path / name)
    return SimpleNamespace(plan=plan, opened=opened, made=made, home=home, failing=failing)


@pytest.mark.parametrize("error", [LACKING, duckdb.BinderException("no column x")])
def test_a_table_that_waits_for_a_column_hides_no_other(lake: Any, error: Exception) -> None:
    lake.failing["b"] = error
    found = table_figures.table_figures(lake)
    assert (found["a"]["live_rows"], found["a"]["quarantined"]) == (3, 2)
    assert found["b"]["live_rows"] is found["b"]["quarantined"] is None
    assert found["new"]["changes_rows"] is None


def test_figures_are_unknown_if_s3_does_not_answer(lake: Any) -> None:
    lake.failing["b"] = ComponentFailed("the lake could not be read", "run it again", "aws")
    with pytest.raises(ComponentFailed):
        table_figures.table_figures(lake)


def test_the_quarantine_is_read_without_tables_that_are_not_made(lake: Any) -> None:
    table_figures.table_figures(lake)
    assert lake.opened[-1] == (naming.QUARANTINE,)
    del lake.made[naming.QUARANTINE]
    lake.opened.clear()
    table_figures.table_figures(lake)
    assert (naming.QUARANTINE,) not in lake.opened


def test_tables_without_a_commit_are_not_read_again(lake: Any) -> None:
    first = table_figures.table_figures(lake)
    lake.opened.clear()
    again = table_figures.table_figures(lake)
    assert again == first
    assert lake.opened == [("b",), ("b",)]  # it could not be read before
    lake.made["a_changes"] = "s3://b/a_changes/2.json"
    lake.made[naming.QUARANTINE] = "s3://b/q/2.json"
    lake.opened.clear()
    assert table_figures.table_figures(lake) == first
    assert ("a", "b") in lake.opened and (naming.QUARANTINE,) in lake.opened


def test_figures_are_right_where_none_can_be_kept(lake: Any, tmp_path: Path) -> None:
    (tmp_path / "figures").write_text("a file in the folder's place")
    assert table_figures.table_figures(lake)["a"]["live_rows"] == 3


def test_figures_of_another_version_or_a_broken_file_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "figures" / "tables.json"
    cache = FigureCache(path)
    cache.put("t", ["s3://b/1.json"], {"live_rows": 7})
    cache.save()
    assert FigureCache(path).get("t", ["s3://b/1.json"]) == {"live_rows": 7}
    assert FigureCache(path).get("t", ["s3://b/2.json"]) is None
    for text in ("{", "[]", '{"version": 0, "entries": {}}'):
        path.write_text(text)
        assert FigureCache(path).get("t", ["s3://b/1.json"]) is None
