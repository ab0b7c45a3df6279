"""Replay and resync on the real lake: what was refused comes in, what differs is made right."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.local.running import PROJECT, SHOP, SHOP_SQL, Business, RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

# Several chunks of an incremental snapshot, and large values that an update does not send again.
MORE_ORDERS = """
insert into orders select i, i % 500, 'new', i * 1.25, '{}', case when i % 100 = 0 then
    (select string_agg(md5(random()::text), '') from generate_series(1, 200)) end
  from generate_series(100001, 120000) i
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with lake_in(tmp_path_factory.mktemp("lake")) as running:
        with running.connect() as connection:
            connection.execute(SHOP_SQL)
            connection.execute(MORE_ORDERS)
        running.run("up", str(SHOP))
        running.assert_equal()
        yield running


def replayed(lake: RunningLake, *words: str) -> dict[str, tuple[int, int]]:
    """By table: events that were replayed, and those that are still refused."""
    tables = lake.run("replay", *words)["tables"]
    return {t["table"]: (t["replayed"], sum(t["refused"].values())) for t in tables}


def test_refused_events_find_their_place_when_the_cause_is_mended(
    lake: RunningLake, tmp_path: Path
) -> None:
    with lake.connect() as connection:
        for order in (800001, 800002, 800003):
            connection.execute(f"insert into orders values ({order}, 1, 'new', 'NaN', '{{}}', 'n')")
        connection.execute("update orders set total = 5 where order_id = 800002")
        connection.execute("delete from orders where order_id = 800003")
        connection.execute("insert into orders values (800004, 1, 'new', 4, '{}', 'n')")
    held = "select count(*) from cdclake_quarantine"
    lake.eventually(lambda: lake.sql(held) == [[3]])
    assert replayed(lake) == {"customers": (0, 0), "orders": (0, 3), "order_items": (0, 0)}
    assert lake.sql(held) == [[3]]
    mended = tmp_path / "shop.yaml"
    mended.write_text(
        SHOP.read_text().replace("tables:\n", "policies: {not_representable: 'null'}\ntables:\n")
    )
    lake.run("up", str(mended))
    assert replayed(lake, "--table", "public.orders") == {"orders": (3, 0)}
    assert lake.sql(held) == [[0]]
    assert lake.sql("select order_id, total from orders_current where order_id > 800000") == [
        [800001, None], [800002, "5.00"], [800004, "4.00"],
    ]  # fmt: skip
    assert replayed(lake) == {"customers": (0, 0), "orders": (0, 0), "order_items": (0, 0)}
    lake.assert_each_identity_once("orders", "order_id")
    with lake.connect() as connection:
        connection.execute("delete from orders where order_id = 800001")
    lake.assert_equal()
    status = {table["table"]: table for table in lake.run("status")["tables"]}
    assert (status["orders"]["quarantined"], status["orders"]["state"]) == (0, "streaming")


def plant_differences(lake: RunningLake, first: int) -> None:
    """Ten orders that the lake alone has, ten that it lacks, ten that it has otherwise."""
    with lake.connect() as connection:
        connection.execute("alter publication cdclake_shop drop table orders")
        connection.execute(f"delete from orders where order_id between {first} and {first + 9}")
        connection.execute(
            "update orders set total = total + 1, note = repeat('otherwise ', 500) "
            f"where order_id between {first + 10} and {first + 19}"
        )
        connection.execute(
            f"insert into orders select i, 1, 'new', 1, '{{}}', 'x' "
            f"from generate_series({first + 600000}, {first + 600009}) i"
        )
        connection.execute("alter publication cdclake_shop add table orders")


def touch_large_rows(connection: psycopg.Connection[Any], round: int) -> None:
    """An update that leaves the large value of a row alone."""
    order = 110000 + 100 * (round % 100)
    connection.execute(f"update orders set status = 'sent' where order_id = {order}")


def resync_beside(lake: RunningLake, counts: list[int]) -> dict[str, object]:
    """`resync orders`, while `orders_current` is counted again and again."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cdclake.cli.main", "resync", "orders", "--json"],
        cwd=PROJECT,
        env={**os.environ, "CDCLAKE_HOME": str(lake.home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None:
        counts.append(lake.sql("select count(*) from orders_current")[0][0])
    assert process.stdout is not None
    answer = json.loads(process.stdout.read())
    assert process.returncode == 0, answer
    [table] = answer["tables"]
    return dict(table)


def test_a_resync_makes_a_table_right_while_everything_flows(lake: RunningLake) -> None:
    plant_differences(lake, 100100)
    report = lake.run("verify", expect=1)
    found = {t["table"]: (t["missing"], t["extra"], t["different"]) for t in report["tables"]}
    assert found == {"customers": (0, 0, 0), "orders": (10, 10, 10), "order_items": (0, 0, 0)}
    counts: list[int] = []
    with Business(lake, seed=7, pause_s=0.05, after_round=touch_large_rows) as business:
        table = resync_beside(lake, counts)
    assert business.rounds > 10
    assert table["ghosts"] == 10, table
    assert counts and min(counts) > 20000
    lake.assert_equal()
    for name, key in (("customers", ["customer_id"]), ("orders", ["order_id"])):
        lake.assert_each_identity_once(name, *key)
    assert lake.sql("select count(*) from orders where cdc_toast_missing is not null") == [[0]]


def test_a_resync_is_finished_by_the_stream(lake: RunningLake) -> None:
    plant_differences(lake, 105000)
    lake.run("resync", "public.orders", "--no-wait")
    lake.kill("stream")
    lake.run("up", str(SHOP))
    ghosts = "select count(*) from orders_current where order_id between 105000 and 105009"
    lake.eventually(lambda: lake.sql(ghosts) == [[0]], seconds=240)
    lake.assert_equal()


def test_what_cannot_be_done_is_said(lake: RunningLake) -> None:
    assert lake.run("resync", "nothing", expect=2)["error"]["code"] == "bad_input"
    assert lake.run("replay", "--table", "nothing", expect=2)["error"]["code"] == "bad_input"
    lake.run("pause")
    assert "paused" in lake.run("resync", "orders", expect=3)["error"]["message"]
    assert "paused" in lake.run("replay", expect=3)["error"]["message"]
    lake.run("resume")
