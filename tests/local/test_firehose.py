"""Tables that Firehose delivers, on the real lake: misbehaving, killed, applied, made again."""

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.local.running import PROJECT, SHOP_SQL, Business, RunningLake, lake_in
from tests.local.source_database import running_server

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

FAULTS = "5:shuffle,duplicate,delay,split,fail"
DOMAIN = """\
  domains:
    sales:
      route: >-
        {destinationDatabaseName: "cdc_iceberg",
        destinationTableName:
        (if has("line_no") then "order_items_changes" else "orders_changes" end)}
"""
TABLES = ("customers", "orders", "order_items")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's file; orders and their lines share a topic, and a query parts them again."""
    text = (PROJECT / "pipelines" / "shop_firehose.yaml").read_text()
    function = "  function: {seconds: 1, mib: 1}\n"
    assert text.count(function) == 1
    text = text.replace(function, function + DOMAIN)
    other_database = "    lake: {database: shop_dev}\n"  # the route names one
    assert other_database in text
    text = text.replace(other_database, "")
    for key in ("[order_id]", "[order_id, line_no]"):
        delivered = f"    key: {key}\n    delivery: firehose\n"
        assert delivered in text
        text = text.replace(delivered, f"{delivered}    domain: sales\n")
    written = tmp_path_factory.mktemp("file") / "shop.yaml"
    written.write_text(text)
    return written


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, file: Path) -> Iterator[RunningLake]:
    with lake_in(tmp_path_factory.mktemp("lake")) as running:
        with running.connect() as connection:
            connection.execute(SHOP_SQL)
        running.run("up", str(file), CDCLAKE_FIREHOSE_TROUBLE=FAULTS)
        yield running


def assert_applied(lake: RunningLake) -> None:
    """The states alone hold what `_current` shows."""
    for table in TABLES:
        counted = lake.sql(
            f"select (select count(*) from {table} where not cdc_deleted),"
            f" (select count(*) from {table}_current)"
        )
        [[state, current]] = counted
        assert state == current > 0, table


def test_a_misbehaving_firehose_that_is_killed_loses_nothing(lake: RunningLake, file: Path) -> None:
    lake.assert_equal()
    with Business(lake, seed=1):
        time.sleep(10)
        lake.kill("firehose")
        time.sleep(3)
        assert not lake.is_running("firehose")
        lake.run("up", str(file), CDCLAKE_FIREHOSE_TROUBLE=FAULTS)
        time.sleep(10)
    lake.assert_equal()
    twice = "select count(*) - count(distinct cdc_position) from customers_changes"
    assert lake.sql(twice) != [[0]]  # it did misbehave
    status = {table["table"]: table for table in lake.run("status")["tables"]}
    for table in TABLES:
        assert (status[table]["state"], status[table]["lag_events"]) == ("streaming", 0)
        assert status[table]["freshness_s"] is not None


def test_the_state_follows_from_such_a_log_and_can_be_made_again(lake: RunningLake) -> None:
    lake.run("job", "apply_changes")
    assert_applied(lake)
    lake.assert_equal()
    with Business(lake, seed=2):
        time.sleep(5)
        lake.run("job", "maintain_tables")
    lake.assert_equal()
    lake.run("job", "apply_changes")
    assert_applied(lake)
    lake.run("job", "rebuild_tables")
    assert_applied(lake)
    lake.assert_equal()


def test_trace_and_peek_tell_the_tables_of_a_topic_apart(lake: RunningLake) -> None:
    """The key of a line contains that of its order, and both are in one topic."""
    [[order]] = lake.sql("select max(order_id) from order_items_current")
    events = f"select count(distinct cdc_position) from orders_changes where order_id = {order}"
    report = lake.run("trace", "orders", str(order))
    assert report["situation"] in ("applied", "not_applied")
    assert [[len(report["events"])]] == lake.sql(events)
    shown = lake.run("peek", "orders", "--last", "200")["events"]
    assert {"items", "orders"} <= {
        "items" if "line_no" in event["key"] else "orders" for event in shown
    }
    assert not [event["refused"] for event in shown if event["refused"]]


def test_what_the_stream_repairs_is_refused_here(lake: RunningLake) -> None:
    for words in (("resync", "orders"), ("replay", "--table", "orders")):
        refused = lake.run(*words, expect=2)
        assert "its delivery is firehose" in refused["error"]["message"]


def failed(lake: RunningLake) -> list[tuple[int, bool]]:
    """How many records of each table's stream failed, and whether that is the last error."""
    tables = {table["table"]: table for table in lake.run("status")["tables"]}
    errors = {name: str(table["last_error"]) for name, table in tables.items()}
    return [
        (tables[name]["failed"], "Lambda.ProcessingFailedStatus" in errors[name]) for name in TABLES
    ]


def insert_nan(lake: RunningLake, order: int) -> None:
    """An order that its type cannot hold, and wait until it has failed."""
    assert failed(lake) == [(0, False)] * 3
    with lake.connect() as connection:
        connection.execute(f"insert into orders values ({order}, 1, 'new', 'NaN', '{{}}', 'n')")
    lake.eventually(lambda: failed(lake) == [(0, False), (1, True), (1, True)])  # of a stream


def test_what_fails_is_kept_and_told(lake: RunningLake) -> None:
    insert_nan(lake, 800001)
    report = lake.run("verify", "--table", "orders", expect=1)
    assert [table["missing"] for table in report["tables"]] == [1]
    assert lake.run("trace", "orders", "800001")["situation"] == "not_stored"
    with lake.connect() as connection:
        connection.execute("delete from orders where order_id = 800001")
    lake.assert_equal()


def test_what_failed_is_quarantined_or_comes_in_when_the_cause_is_mended(
    lake: RunningLake, file: Path, tmp_path: Path
) -> None:
    quarantined = "select count(distinct topic) from cdclake_quarantine where \"table\" = 'orders'"
    told = lake.run("redrive", "--dry-run")
    [reason] = told["quarantined"]
    assert reason.startswith("NOT_REPRESENTABLE")
    assert lake.run("redrive") == {**told, "dry_run": False}
    assert lake.run("redrive")["objects"] == 0
    assert failed(lake) == [(0, False)] * 3
    lake.eventually(lambda: lake.sql(quarantined) == [[1]])
    [orders] = [t for t in lake.run("status")["tables"] if t["table"] == "orders"]
    assert orders["quarantined"] == 1

    insert_nan(lake, 800002)
    changed = tmp_path / "shop.yaml"
    changed.write_text(file.read_text() + "policies: {not_representable: null}\n")
    lake.run("up", str(changed), CDCLAKE_FIREHOSE_TROUBLE=FAULTS)
    assert lake.run("redrive")["redriven"] == {"orders_changes": 1}
    assert failed(lake) == [(0, False)] * 3
    total = "select distinct total from orders_current where order_id = 800002"
    lake.eventually(lambda: lake.sql(total) == [[None]])
    with lake.connect() as connection:
        connection.execute("delete from orders where order_id = 800002")
    lake.assert_equal()
    lake.run("pause")
    refused = lake.run("redrive", expect=3)
    assert "firehose is not running" in refused["error"]["message"]
    lake.run("resume")


def test_pause_and_resume(lake: RunningLake) -> None:
    lake.run("pause")
    assert not lake.is_running("firehose")
    with lake.connect() as connection:
        connection.execute("update customers set name = 'after the pause' where customer_id = 499")
    lake.run("resume")
    lake.assert_equal()


def test_a_new_column_arrives_with_all_its_values(
    lake: RunningLake, file: Path, tmp_path: Path
) -> None:
    with lake.connect() as connection:
        connection.execute("alter table customers add column level int default 7")
    wider = tmp_path / "shop.yaml"
    after = "      updated_at: timestamptz\n  public.orders:"
    assert after in file.read_text()
    added = "      updated_at: timestamptz\n      level: integer\n  public.orders:"
    wider.write_text(file.read_text().replace(after, added))
    with Business(lake, seed=3):
        time.sleep(3)
        lake.run("up", str(wider), CDCLAKE_FIREHOSE_TROUBLE=FAULTS)
        time.sleep(3)
    lake.assert_equal()
    assert lake.sql("select count(*) from customers_current where level is distinct from 7") == [
        [0]
    ]
    [customers] = [t for t in lake.run("status")["tables"] if t["table"] == "customers"]
    assert customers["failed"] == 0, customers["last_error"]


def test_a_new_epoch_sweeps_what_was_deleted_meanwhile(tmp_path: Path, file: Path) -> None:
    with running_server() as server, lake_in(tmp_path) as lake:
        dsn = f"{server}/postgres"
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(SHOP_SQL.encode())
        lake.run("up", str(file), "--source", dsn, CDCLAKE_FIREHOSE_TROUBLE=FAULTS)
        lake.assert_equal()
        lake.run("job", "apply_changes")
        lake.run("down")  # an external source keeps no slot
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("delete from customers where customer_id % 7 = 3")
            connection.execute("truncate order_items")
        lake.run("up", str(file), "--source", dsn, CDCLAKE_FIREHOSE_TROUBLE=FAULTS)

        def has_loaded() -> bool:
            return {t["state"] for t in lake.run("status")["tables"]} == {"streaming"}

        lake.eventually(has_loaded, 120)

        def is_swept() -> bool:  # also a table without rows in the snapshot
            lake.run("job", "apply_changes")
            return lake.sql("select count(*) from order_items where not cdc_deleted") == [[0]]

        lake.eventually(is_swept, 180)
        lake.assert_equal()
