"""Tables that join a running lake, leave it, and join again, while everything is written to."""

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.local.running import SHOP, SHOP_SQL, RunningLake, ShopWriter, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

# Rows 1, 3001, 6001, ... have a large value.
VISITS = """
create table visits (id bigint primary key, page text, at timestamptz, body text);
alter table visits alter body set storage external;
insert into visits select i, md5(i::text), now(),
  case when i % 3000 = 1 then repeat(md5(i::text), 100) end from generate_series(1, 300000) i
"""


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[RunningLake]:
    with lake_in(tmp_path) as running:
        with running.connect() as connection:
            connection.execute(SHOP_SQL)
            connection.execute(VISITS)
        running.run("up", str(SHOP))
        yield running


@pytest.fixture
def grown(tmp_path: Path) -> str:
    """The shop's file with the table of visits in it."""
    file = tmp_path / "grown.yaml"
    file.write_text(
        SHOP.read_text()
        + "\n  public.visits:\n    key: [id]\n"
        + "    columns: {id: bigint, page: text, at: timestamptz, body: text}\n"
    )
    return str(file)


def test_tables_join_and_leave_a_running_lake(lake: RunningLake, grown: str) -> None:
    lake.run("up", grown)
    with lake.connect() as connection:
        writer = ShopWriter(connection, seed=5)
        _others_flow_while_it_is_snapshotted(lake, connection, writer)
        tables = lake.assert_equal("--wait", "300")
        assert tables["visits"]["source_rows"] > 299_000

        lake.run("up", str(SHOP))
        connection.execute("delete from visits where id % 3 = 0")
        connection.execute("insert into visits values (999999, 'while away', now())")
        connection.execute("update visits set body = repeat('other', 1000) where id = 3001")
        writer.change(transactions=10)
        assert "visits" not in lake.assert_equal()

        lake.run("up", grown)
    gone = "select count(*) from visits_current where id % 3 = 0 and id < 999999"
    lake.eventually(lambda: lake.sql(gone) == [[0]], seconds=240)
    tables = lake.assert_equal("--wait", "300")
    assert tables["visits"]["lake_rows"] == tables["visits"]["source_rows"] < 201_000
    lake.assert_each_identity_once("visits", "id")


def test_a_table_that_leaves_while_it_is_read_can_join_again(lake: RunningLake, grown: str) -> None:
    lake.run("up", grown)
    lake.run("up", str(SHOP))
    with lake.connect() as connection:
        connection.execute("delete from visits where id % 3 = 0")
    deadline = time.monotonic() + 120
    while not (answer := lake.run("up", grown, expect=None))["ok"]:
        assert "still reading it" in answer["error"]["message"]
        assert time.monotonic() < deadline
        time.sleep(2)
    gone = "select count(*) from visits_current where id % 3 = 0"
    lake.eventually(lambda: lake.sql(gone) == [[0]], seconds=240)
    lake.assert_equal("--wait", "300")


def _others_flow_while_it_is_snapshotted(
    lake: RunningLake, connection: psycopg.Connection, writer: ShopWriter
) -> None:
    deadline = time.monotonic() + 240
    flowed_meanwhile = False
    marker = 0
    while time.monotonic() < deadline:
        marker += 1
        writer.change(transactions=3)
        connection.execute(f"update visits set page = 'changed' where id = {marker * 1000}")
        connection.execute(
            f"insert into customers values ({5_000_000 + marker}, 'beside the snapshot')"
        )
        [[snapshotted]] = lake.sql("select count(distinct id) from visits_changes")
        [[seen]] = lake.sql("select count(*) from customers_current where customer_id > 5000000")
        if 0 < snapshotted < 290_000 and seen > 0:
            flowed_meanwhile = True
        if snapshotted >= 300_000:
            break
        time.sleep(1)
    assert flowed_meanwhile
