"""Rows and changes that the source keeps from the connector, or converts without an event."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdclake.errors import ComponentFailed
from cdclake.local import operations_backend
from cdclake.local.lake.lake import open_lake
from cdclake.local.operations_backend import local_operations
from cdclake.local.process.home import Home
from tests.local.running import RunningLake, streamed_lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

SOURCE = """
create table orders (id bigint primary key, at timestamp, code char(3), doc json,
  note varchar(9));
create table parts (id bigint primary key, n int) partition by range (id);
create table parts_1 partition of parts for values from (1) to (101);
insert into orders select i, timestamp '2026-01-01 10:00:00.7' + i * interval '1 hour', 'a',
  '{"b": 1,   "a": 2}', 'ab   ' from generate_series(1, 20) i;
insert into parts select i, i from generate_series(1, 20) i;
"""
PIPELINE = """
version: 1
name: hidden
source: {database: postgres}
tables:
  public.orders:
    key: [id]
    columns: {id: bigint, at: timestamp, code: char(3), doc: json, note: text}
  public.parts: {key: [id], columns: {id: bigint, n: int}}
"""
DELIVERED = (
    PIPELINE
    + """
  public.visits: {key: [id], delivery: firehose, columns: {id: bigint}}
firehose: {buffer: {seconds: 1, mib: 64}, function: {seconds: 1, mib: 1}}
"""
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    with streamed_lake_in(tmp_path_factory.mktemp("hidden"), PIPELINE, SOURCE) as lake:
        yield lake


def run(lake: RunningLake, *statements: str) -> None:
    with lake.connect() as connection:
        for statement in statements:
            connection.execute(statement)


def changes(lake: RunningLake) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the relation changes that `status` shows, by table and kind."""
    return {
        (table["table"], change["kind"]): change
        for table in lake.run("status")["tables"]
        for change in table["relation_changes"]
    }


def keys(lake: RunningLake, table: str) -> list[int]:
    return [row[0] for row in lake.sql(f"select id from {table}_current order by id")]


def resynced(lake: RunningLake, *file: str) -> set[tuple[str, str]]:
    """Run `up`; return the tables that it reads again, with the reason."""
    found = lake.run("up", *file)["relation_changes"]
    return {(change["source"], change["kind"]) for change in found if change["did"] == "resync"}


def test_deletes_that_a_narrowed_publication_omits_are_found(lake: RunningLake) -> None:
    narrowed = "publish = 'insert, update', publish_via_partition_root = false"
    run(
        lake,
        f"alter publication cdclake_hidden set ({narrowed})",
        "delete from orders where id <= 5",
        "insert into parts values (50, 50)",
        "insert into orders (id) values (50)",
    )
    lake.eventually(lambda: 50 in keys(lake, "orders"))
    assert set(changes(lake)) == {("orders", "unpublished"), ("parts", "unpublished")}
    unpublished = {("public.orders", "unpublished"), ("public.parts", "unpublished")}
    assert resynced(lake) == unpublished
    lake.eventually(lambda: keys(lake, "orders") == [*range(6, 21), 50], 90)
    lake.eventually(lambda: keys(lake, "parts") == [*range(1, 21), 50], 90)
    assert changes(lake) == {}


def test_a_row_filter_concerns_its_table(lake: RunningLake) -> None:
    others = "cdclake.heartbeat, cdclake.signal, parts"
    run(
        lake,
        f"alter publication cdclake_hidden set table {others}, orders where (id > 10)",
        "delete from orders where id = 6",
    )
    [(found, change)] = changes(lake).items()
    assert (found, "filters its rows" in change["message"]) == (("orders", "unpublished"), True)
    run(lake, f"alter publication cdclake_hidden set table {others}, orders")
    assert set(changes(lake)) == {("orders", "unpublished")}  # its deleted row is still there
    assert resynced(lake) == {("public.orders", "unpublished")}
    lake.eventually(lambda: keys(lake, "orders") == [*range(7, 21), 50], 90)
    assert changes(lake) == {}


def test_values_that_postgres_converts_are_read_again(lake: RunningLake) -> None:
    run(
        lake,
        "alter table orders alter at type timestamp(0), alter code type char(5),"
        " alter doc type jsonb, alter note type varchar(3)",
    )
    [(found, change)] = changes(lake).items()
    assert (found, "at, code, doc, note" in change["message"]) == (("orders", "converted"), True)
    assert resynced(lake) == {("public.orders", "converted")}
    padded = "select count(*) from orders_current where code = 'a    ' and note = 'ab '"
    lake.eventually(lambda: lake.sql(padded) == [[14]], 90)
    assert changes(lake) == {}
    lake.assert_equal()


def test_a_resync_never_takes_visible_rows_for_all(lake: RunningLake) -> None:
    run(lake, "alter table orders enable row level security")
    assert "hide rows" in changes(lake)["orders", "unreadable"]["message"]
    refused = lake.run("resync", "orders", expect=2)["error"]
    assert "row-level security" in refused["message"]
    assert refused["remedy"] == 'run in the source: ALTER ROLE "cdclake_hidden" BYPASSRLS;'
    run(lake, "insert into orders (id) values (60)")  # its stream goes on
    lake.eventually(lambda: 60 in keys(lake, "orders"))
    lake.assert_equal()
    lake.run("resync", "parts")


def test_a_snapshot_from_which_rows_are_hidden_removes_none(
    lake: RunningLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row-level security may also be enabled after the check."""
    there = open_lake(Home(lake.home))
    with monkeypatch.context() as unchecked:
        unchecked.setattr(operations_backend, "check_snapshot", lambda *_: None)
        with pytest.raises(ComponentFailed, match=r"did not read public\.orders: SQL_EXC"):
            local_operations(there).resync(there.plan.table("orders"))
    lake.assert_equal()
    run(lake, 'alter role "cdclake_hidden" bypassrls')
    assert changes(lake) == {}
    [answer] = lake.run("resync", "orders")["tables"]
    assert (answer["rows"], answer["ghosts"]) == (16, 0)
    lake.assert_equal()


def test_an_up_that_died_leaves_nothing_unread(lake: RunningLake, tmp_path: Path) -> None:
    """It had repaired the publication; Firehose's table is only reported, and refuses nothing."""
    without, delivered = str(tmp_path / "without.yaml"), str(tmp_path / "delivered.yaml")
    Path(without).write_text(PIPELINE)
    Path(delivered).write_text(DELIVERED)
    run(lake, "create table visits (id bigint primary key)", "insert into visits values (1), (2)")
    lake.run("up", delivered)
    lake.eventually(lambda: keys(lake, "visits") == [1, 2], 120)
    run(
        lake,
        "alter publication cdclake_hidden set (publish = 'insert, update')",
        "delete from orders where id <= 10",
        "delete from visits where id = 1",
    )
    lake.die_in_up(delivered)
    tables = ("orders", "parts", "visits")
    assert set(changes(lake)) == {(table, "unpublished") for table in tables}
    assert resynced(lake) == {(f"public.{table}", "unpublished") for table in tables[:2]}
    with lake.connect() as connection:
        left = [id for (id,) in connection.execute("select id from orders order by id")]
    lake.eventually(lambda: keys(lake, "orders") == left, 90)
    [(found, change)] = changes(lake).items()
    assert (found, "another `name:`" in change["remedy"]) == (("visits", "unpublished"), True)
    lake.die_in_up(without)  # an unfinished removal, which is undone
    assert resynced(lake, delivered) == set()
    run(lake, "insert into visits values (3)")
    lake.eventually(lambda: keys(lake, "visits") == [1, 2, 3], 120)
    lake.run("up", without)
    refused = lake.run("up", delivered, expect=2)["error"]
    assert refused["remedy"] == "add it under another `name:`"
    with lake.connect() as connection:  # refused before anything is changed
        published = connection.execute("select tablename from pg_publication_tables").fetchall()
    assert ("visits",) not in published
