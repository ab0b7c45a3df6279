"""Columns that the source gets and the file neither declares nor excludes, under each policy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from tests.local.running import RunningLake, lake_in
from tests.local.test_widened_columns import topic

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(1200)]

CREATED = """
create table noted (id int primary key, v int);
create table other (id int primary key, v int);
insert into noted select i, i from generate_series(1, 20) i;
insert into other select i, i from generate_series(1, 20) i;
"""
PIPELINE = """\
version: 1
name: wider
source: {database: postgres}
policies: {new_columns: ignore}
tables:
  public.noted:
    key: [id]
    columns:  # the list is what flows
      id: int
      v: int
  public.other: {key: [id], columns: {id: int, v: int}}  # in one line
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    folder = tmp_path_factory.mktemp("lake")
    with lake_in(folder) as running:
        with running.connect() as connection:
            connection.execute(CREATED)
        file_of(running).write_text(PIPELINE)
        running.run("up", str(file_of(running)))
        running.assert_equal()
        yield running


def file_of(lake: RunningLake) -> Path:
    return lake.home.parent / "wider.yaml"


def write(lake: RunningLake, old: str, new: str) -> dict[str, Any]:
    """Change the file, and apply it."""
    text = file_of(lake).read_text()
    assert old in text
    file_of(lake).write_text(text.replace(old, new))
    return lake.run("up", str(file_of(lake)))


def execute(lake: RunningLake, *statements: str) -> None:
    with lake.connect() as connection:
        for statement in statements:
            connection.execute(statement)


def table_of(lake: RunningLake, name: str) -> dict[str, Any]:
    return next(t for t in lake.run("status")["tables"] if t["table"] == name)


def await_state(lake: RunningLake, state: str) -> None:
    lake.eventually(lambda: table_of(lake, "noted")["state"] == state, 90)


def test_ignored_columns_never_leave_the_connector(lake: RunningLake) -> None:
    execute(
        lake,
        "alter table noted add column secret text default 'undeclared-default'",
        "update noted set secret = 'undeclared-update', v = 100 where id = 1",
        "insert into noted values (21, 21, 'undeclared-insert')",
    )
    lake.eventually(lambda: lake.sql("select v from noted_current where id = 21") == [[21]], 90)
    [change] = table_of(lake, "noted")["source_changes"]
    assert (change["column"], change["line"], change["ignored"]) == ("secret", 8, True)
    assert change["remedy"] == "write `secret: text`, or `secret: {exclude: true}`"
    assert table_of(lake, "noted")["state"] == "streaming"
    lake.run("resync", "noted")
    lake.assert_equal()
    assert b"undeclared" not in topic(lake, "wider.public.noted")


def test_a_stopped_table_continues_when_the_column_is_declared(lake: RunningLake) -> None:
    excluded = "      v: int\n      secret: {exclude: true}\n"
    write(lake, "new_columns: ignore", "new_columns: stop")
    await_state(lake, "stopped")  # the file has left out `secret`, and has not excluded it
    write(lake, "      v: int\n", excluded)
    await_state(lake, "streaming")
    assert table_of(lake, "noted")["source_changes"] == []

    execute(lake, "alter table noted add column more text default 'd'")
    await_state(lake, "stopped")
    execute(
        lake, "insert into noted values (22, 22, 's', 'more')", "insert into other values (22, 22)"
    )
    error = table_of(lake, "noted")["last_error"]
    assert "undeclared columns in the source ('more')" in error
    assert "write `more: text`, or `more: {exclude: true}`" in error
    lake.eventually(lambda: lake.sql("select v from other_current where id = 22") == [[22]], 90)
    lake.run("resume")
    time.sleep(20)  # some batches: a resumed table stops again as long as nothing is declared
    assert table_of(lake, "noted")["state"] == "stopped"
    assert lake.sql("select count(*) from noted_current where id = 22") == [[0]]

    dsn = make_conninfo(**lake.dsn)
    answer = lake.run("init", "--update", str(file_of(lake)), CDCLAKE_SOURCE_DSN=dsn)
    assert [t["added_columns"] for t in answer["tables"]] == [["more"], []]
    assert f"{excluded}      more: text\n" in file_of(lake).read_text()
    lake.run("up", str(file_of(lake)))
    await_state(lake, "streaming")
    query = "select id, more from noted_current where id in (1, 22) order by id"
    lake.eventually(lambda: lake.sql(query) == [[1, "d"], [22, "more"]], 90)
    lake.assert_equal()


def test_a_stopped_table_continues_when_the_column_is_dropped(lake: RunningLake) -> None:
    execute(lake, "alter table noted add column brief int")
    await_state(lake, "stopped")
    execute(lake, "insert into noted values (23, 23)", "alter table noted drop column brief")
    await_state(lake, "streaming")
    lake.assert_equal()


def test_up_declares_new_columns_and_keeps_the_file(lake: RunningLake) -> None:
    write(lake, "new_columns: stop", "new_columns: declare")
    before = file_of(lake).read_text()
    execute(
        lake,
        "alter table noted add column price numeric(12,2) default 1.25",
        "alter table other add column price numeric(12,2) default 2.5",
        "alter table other add column shape box",
    )
    [change] = table_of(lake, "noted")["source_changes"]
    assert change["remedy"].startswith("run `cdclake up`, which writes it into the file; or write")
    answer = lake.run("up")
    declared = {"price": "numeric(12,2)"}
    assert answer["declared_columns"] == {"public.noted": declared, "public.other": declared}
    assert file_of(lake).read_text() == before.replace(
        "      more: text\n", "      more: text\n      price: numeric(12,2)\n"
    ).replace("v: int}}", "v: int, price: 'numeric(12,2)'}}")
    for table, price in (("noted", 1.25), ("other", 2.5)):
        query = f"select distinct price from {table}_current"
        lake.eventually(
            lambda query=query, price=price: (
                [[float(row[0] or 0)] for row in lake.sql(query)] == [[price]]
            ),
            90,
        )
    lake.assert_equal()
    [shape] = table_of(lake, "other")["source_changes"]
    assert (shape["column"], shape["remedy"]) == ("shape", "write `shape: {exclude: true}`")
    assert "declared_columns" not in lake.run("up")
