"""The default suite's run of the real lake: everything once, from PostgreSQL to proven tables."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet
import pytest

from cdclake import naming
from cdclake.local.process.home import Home
from tests.local.running import DERIVED, PROJECT, SHOP, RunningLake, ShopWriter, shop_lake_in

pytestmark = [pytest.mark.local, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with shop_lake_in(tmp_path_factory.mktemp("lake")) as running:
        yield running


def test_every_object_exists_when_up_returns(lake: RunningLake) -> None:
    counts = [
        f"(select count(*) from {table}{suffix})"
        for table in ("customers", "orders", "order_items")
        for suffix in ("", "_changes", "_current", "_history")
    ]
    [[*_, refused]] = lake.sql(f"select {', '.join(counts)}, count(*) from cdclake_quarantine")
    assert refused == 0


def ask_connect(lake: RunningLake, path: str, put: dict[str, str] | None = None) -> Any:
    """The answer of Connect's REST interface; with a body, that of a PUT."""
    connect = lake.endpoints.connect
    request = urllib.request.Request(
        f"{connect.url}{path}",
        headers={"Content-Type": "application/json", **connect.headers},
        data=None if put is None else json.dumps(put).encode(),
        method="GET" if put is None else "PUT",
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_the_password_is_resolved_where_it_is_used_and_stands_nowhere_else(
    lake: RunningLake,
) -> None:
    """As on AWS: Connect's REST interface, its topics and its log hold the reference alone."""
    config = ask_connect(lake, "/connectors/shop-source/config")
    assert config["database.password"] == "${secretsmanager:shop/source:password}"
    kept = (lake.home / "secrets.properties").read_text().splitlines()
    [password] = [x.split("=", 1)[1] for x in kept if x.startswith("replication_password=")]
    for place in (lake.home / "logs" / "connect.log", lake.home / "run" / "connect.properties"):
        assert password not in place.read_text()


def test_the_printed_connector_is_the_running_one_and_valid(lake: RunningLake) -> None:
    """`cdclake connector` for a worker of one's own, asked of a real worker with our plugin."""
    address = ("--host", lake.dsn["host"], "--port", str(lake.dsn["port"]), "--heap-mb", "1024")
    printed = lake.run("connector", str(SHOP), *address)
    running = ask_connect(lake, f"/connectors/{printed['name']}/config")
    # Connect adds the name; the embedded database has another name and no certificate.
    local = ("name", "database.dbname", "database.sslmode", "database.sslfactory")
    config = printed["config"]
    assert {k: v for k, v in config.items() if k not in local} == {
        k: v for k, v in running.items() if k not in local
    }
    here = {k: running[k] for k in local if k in running}
    config = {k: v for k, v in config.items() if k not in local} | here
    of_plugin = "/connector-plugins/LsnGroupConnector/config/validate"
    answer = ask_connect(lake, of_plugin, put=config)
    assert answer["error_count"] == 0, answer
    del config["topic.prefix"]
    assert ask_connect(lake, of_plugin, put=config)["error_count"] == 1


def test_psql_is_run_with_the_password_in_its_environment(
    lake: RunningLake, tmp_path: Path
) -> None:
    fake = tmp_path / "psql"
    fake.write_text('#!/bin/sh\necho "$@"\necho "$PGPASSWORD"\n')
    fake.chmod(0o700)
    done = subprocess.run(
        [sys.executable, "-m", "cdclake.cli.main", "psql", "--", "-c", "select 1"],
        env={**os.environ, "CDCLAKE_HOME": str(lake.home), "PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    arguments, password = done.stdout.splitlines()
    shown, _, rest = arguments.partition(" -c ")
    assert rest == "select 1" and "password" not in shown
    with psycopg.connect(shown, password=password) as connection:
        assert connection.execute("select count(*) from customers").fetchone() == (500,)
    assert lake.run("psql")["source"]["password"] == password


def test_doctor_finds_slot_and_publication_of_the_lake(lake: RunningLake) -> None:
    told = {check["name"]: check["state"] for check in lake.run("doctor")["checks"]}
    of_lake = ("lake", "clock", "slot", "publication")
    assert {name: told.get(name) for name in of_lake} == dict.fromkeys(of_lake, "ok")


def test_the_snapshot_is_equal(lake: RunningLake) -> None:
    tables = lake.assert_equal()
    assert tables["orders"]["source_rows"] == tables["orders"]["lake_rows"] == 1000


def test_the_stream_logs_no_line_per_record(lake: RunningLake) -> None:
    """1,000 rows of a snapshot and more; Spark warned of KAFKA-1894 for each that it read."""
    lines = Home(lake.home).log(naming.STREAM_COMPONENT).read_text().splitlines()
    assert [line for line in lines if "events in" in line]
    assert [line for line in lines if "KafkaDataConsumer" in line] == []


def test_changes_of_every_kind_arrive(lake: RunningLake) -> None:
    with lake.connect() as connection:
        ShopWriter(connection, seed=1).change(transactions=60)
        connection.execute("update orders set order_id = order_id + 900000 where order_id <= 30")
        connection.execute("truncate order_items")
        connection.execute("insert into order_items values (1, 1, 'after', 1, 1, 0, true)")
    lake.assert_equal()
    for table, key in (
        ("customers", ["customer_id"]),
        ("orders", ["order_id"]),
        ("order_items", ["order_id", "line_no"]),
    ):
        lake.assert_each_identity_once(table, *key)
    assert lake.sql("select distinct cdc_op from order_items_changes order by 1")[-1] == ["t"]


@pytest.mark.slow  # by default the recorded events have such a NULL
def test_a_null_in_a_column_with_a_default_stays_null(lake: RunningLake) -> None:
    with lake.connect() as connection:
        connection.execute("alter table customers alter phone set default 'unknown'")
        connection.execute("insert into customers values (777001, 'n', null, null)")
    lake.assert_equal("--table", "customers")
    assert lake.sql("select phone from customers_current where customer_id = 777001") == [[None]]


def test_an_event_that_cannot_be_decoded_is_quarantined_and_the_rest_goes_on(
    lake: RunningLake,
) -> None:
    from confluent_kafka import Producer

    producer = Producer(lake.endpoints.kafka.settings)
    producer.produce("shop.public.customers", key=b'{"customer_id": 5}', value=b"{rubbish")
    producer.flush()
    with lake.connect() as connection:
        connection.execute("update customers set name = 'after rubbish' where customer_id = 499")
    lake.assert_equal()
    rows = lake.sql('select topic, value, reason, "table" from cdclake_quarantine')
    assert len(rows) == 1
    assert rows[0][0] == "shop.public.customers"
    assert rows[0][2].startswith("UNREADABLE_VALUE")
    status = {table["table"]: table for table in lake.run("status")["tables"]}
    assert status["customers"]["quarantined"] == 1
    assert status["customers"]["state"] == "streaming"


@pytest.mark.slow  # the model test does the same during its disturbances
def test_maintenance_beside_the_stream_changes_nothing_but_files(lake: RunningLake) -> None:
    with lake.connect() as connection:
        ShopWriter(connection, seed=2).change(transactions=20)
        report = lake.run("job", "maintain_tables")
        ShopWriter(connection, seed=3).change(transactions=20)
    assert report["ok"], report
    names = [table["table"] for table in report["tables"]]
    assert sorted(names) == ["cdclake_quarantine", "customers", "order_items", "orders"]
    lake.assert_equal()


@pytest.mark.slow  # the model test does the same during its disturbances
def test_the_state_can_be_rebuilt_from_the_log(lake: RunningLake) -> None:
    report = lake.run("job", "rebuild_tables")
    assert report["ok"], report
    lake.assert_equal()
    live = lake.sql("select count(*) from orders_current")
    assert lake.sql("select count(*) from orders where not cdc_deleted") == live


@pytest.mark.slow
def test_time_travel_shows_the_lake_as_it_was(lake: RunningLake) -> None:
    [[then]] = lake.sql("select now()::varchar")
    [[count]] = lake.sql("select count(*) from customers_current")
    with lake.connect() as connection:
        connection.execute("insert into customers values (888001, 'later')")
    lake.assert_equal("--table", "customers")
    assert lake.sql("select count(*) from customers_current") == [[count + 1]]
    rows = lake.run("sql", "select count(*) from customers_current", "--at", then)["rows"]
    assert rows == [[count]]
    listed = lake.run("snapshots", "customers")["snapshots"]
    [newest] = [s for s in listed if s["current"] and s["relation"] == "customers_changes"]
    early = [s for s in listed if s["relation"] == "customers_changes" and s is not newest]
    query = "select count(*) from customers_changes"
    for snapshot in (newest, early[0]):
        shown = lake.run("sql", query, "--at", str(snapshot["snapshot"]))["rows"]
        assert shown == [[snapshot["rows"]]]
    assert {s["operation"] for s in early} >= {"append"}


@pytest.mark.slow
def test_query_is_written_as_parquet_and_refused_with_a_suggestion(
    lake: RunningLake, tmp_path: Path
) -> None:
    query = tmp_path / "query.sql"
    query.write_text("select * from customers_current order by 1")
    words = ("sql", "-f", str(query), "--at", "-1s", "--format", "parquet")
    done = subprocess.run(
        [sys.executable, "-m", "cdclake.cli.main", *words],
        cwd=PROJECT,
        env={**os.environ, "CDCLAKE_HOME": str(lake.home)},
        capture_output=True,
        check=True,
    )
    rows = pyarrow.parquet.read_table(pyarrow.BufferReader(done.stdout)).num_rows
    assert [[rows]] == lake.sql("select count(*) from customers_current")
    refused = lake.run("sql", "select * from custmers", expect=2)["error"]
    assert refused["remedy"].startswith("did you mean customers_current?")


@pytest.mark.slow  # by default tests/unit/catalogue/test_as_of.py, against the model
def test_rows_are_those_of_any_commit_time(lake: RunningLake) -> None:
    query = "select customer_id, email from customers{} order by 1"
    with lake.connect() as connection:
        connection.execute("update customers set email = 'before' where customer_id < 30")
        rows = [list(row) for row in connection.execute(query.format("")).fetchall()]
        [then] = connection.execute("select clock_timestamp()::text").fetchone() or []
        connection.execute("update customers set email = 'after' where customer_id < 40")
        connection.execute("delete from customers where customer_id between 41 and 45")
    lake.assert_equal("--table", "customers")
    shown = lake.run("sql", query.format("_current"), "--as-of", then)
    assert shown["rows"] == rows
    counted = "select count(*) from customers_changes where cdc_committed_at > '{}'"
    assert lake.run("sql", counted.format(then), "--as-of", then)["rows"] == [[0]]
    state = lake.run("sql", "select * from customers", "--as-of", then, expect=2)
    assert "customers_current" in state["error"]["remedy"]
    early = lake.run("sql", query.format("_current"), "--as-of", "2020-01-01", expect=2)
    assert "complete since" in early["error"]["message"]


@pytest.mark.slow
def test_the_queries_for_those_who_come_from_an_article_run(lake: RunningLake) -> None:
    page = (PROJECT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    queries = [
        query for block in re.findall(r"```sql\n(.*?)```", page, re.S) for query in block.split(";")
    ]
    answers = [lake.run("sql", query) for query in queries if query.strip()]
    assert len(answers) == 5
    assert len(answers[0]["rows"]) == 10
    assert {row[4] for row in answers[3]["rows"]} <= {"Created", "Updated", "Deleted", "Snapshot"}


JOINED = """
select i.order_id, i.line_no, i.sku, i.unit_price::varchar, o.status, o.ordered_at::varchar,
  c.customer_id, c.name
from order_items{0} i join orders{0} o on o.order_id = i.order_id
left join customers{0} c on c.customer_id = o.customer_id order by 1, 2
"""
LINES = """
select order_id, line_no, sku, unit_price::varchar, status, ordered_at::varchar, customer_id,
  customer from order_lines order by 1, 2
"""
TOTALS = "select customer_id, total::varchar from totals_json order by 1 nulls first"
EXPECTED_TOTALS = """
select customer_id, sum(total)::decimal(22, 2)::varchar from orders_current
group by 1 order by 1 nulls first
"""
FILES = (
    "select order_id, line_no, unit_price::varchar, status from order_lines_parquet order by 1, 2"
)


@pytest.mark.slow  # by default tests/spark/test_derived.py follows the same sources
def test_derived_tables_follow_their_sources(lake: RunningLake, tmp_path: Path) -> None:
    file = tmp_path / "derived.yaml"
    file.write_text(SHOP.read_text() + DERIVED)
    with lake.connect() as connection:  # tests before this one leave few rows
        connection.execute(
            "insert into order_items select order_id, n, 'sku' || n, n, 1.5, 0.1, true"
            " from orders, generate_series(1, 2) n on conflict do nothing"
        )
    lake.run("up", str(file))
    lake.assert_equal()
    report = lake.run("job", "refresh_derived")
    assert [table["error"] for table in report["tables"]] == [None, None, None]
    lines = lake.sql(JOINED.format("_current"))
    assert len(lines) > 500
    assert lake.sql(LINES) == lines
    assert lake.sql(FILES) == [[row[0], row[1], row[3], row[4]] for row in lines]
    assert lake.sql(TOTALS) == lake.sql(EXPECTED_TOTALS)
    with lake.connect() as connection:
        ShopWriter(connection, seed=12).change(transactions=20)
        connection.execute("update customers set name = 'renamed' where customer_id < 20")
    lake.assert_equal()
    report = lake.run("job", "refresh_derived", "--table", "order_lines")
    lines = lake.sql(JOINED.format("_current"))
    assert lake.sql(LINES) == lines
    assert 0 < report["tables"][0]["rows_applied"] < len(lines), "what has changed is written"
    jobs = {job["job"] for job in lake.run("status")["schedules"]}
    assert "refresh_derived-order_lines" in jobs
    # As the supervisor starts it: without a change it starts no Spark.
    run = ("-m", "cdclake.local.scheduled_job", "--home", str(lake.home))
    words = (*run, "--job", "refresh_derived", "--table", "order_lines")
    ended = subprocess.run([sys.executable, *words], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert b"order_lines: nothing has changed" in ended.stdout


def test_planted_differences_are_found(lake: RunningLake) -> None:
    """A missing, an extra and a corrupted row: planted in the source behind the lake's back."""
    with lake.connect() as connection:
        connection.execute(
            "create temp table kept as select * from customers where customer_id = 450"
        )
        connection.execute("alter publication cdclake_shop drop table customers")
        connection.execute("delete from customers where customer_id = 450")
        connection.execute("update customers set email = 'corrupted' where customer_id = 451")
        connection.execute("insert into customers values (999001, 'unknown to the lake')")
        try:
            report = lake.run("verify", "--table", "customers", expect=1)
        finally:
            connection.execute("delete from customers where customer_id = 999001")
            connection.execute("insert into customers select * from kept on conflict do nothing")
            connection.execute(
                "update customers set email = '451@example.org' where customer_id = 451"
            )
            connection.execute("alter publication cdclake_shop add table customers")
    [table] = report["tables"]
    assert not report["ok"]
    assert (table["missing"], table["extra"], table["different"]) == (1, 1, 1)
    assert {example["kind"] for example in table["first"]} == {"missing", "extra", "different"}


@pytest.mark.slow  # the model test does the same during its disturbances
def test_pause_and_resume(lake: RunningLake) -> None:
    lake.run("pause")
    with lake.connect() as connection:
        connection.execute("update customers set name = 'while paused' where customer_id = 490")
    assert lake.run("status")["paused"]
    lake.run("resume")
    lake.assert_equal()


@pytest.mark.slow  # by default test_stack stops and starts everything
def test_down_keeps_everything(lake: RunningLake) -> None:
    lake.run("down")
    assert lake.processes() == []
    assert lake.run("status", expect=3)["error"]["code"] == "not_running"
    started = time.monotonic()
    lake.run("up", str(SHOP))
    assert time.monotonic() - started < 180
    with psycopg.connect(**lake.dsn, autocommit=True) as connection:
        ShopWriter(connection, seed=4).change(transactions=10)
    lake.assert_equal()
