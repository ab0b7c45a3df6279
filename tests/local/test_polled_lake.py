"""A lake with only polled tables, of a read replica that it may not change; its first stream."""

import re
from pathlib import Path

import psycopg
import pytest

from tests.local.running import lake_in
from tests.local.source_database import running_server
from tests.local.standby import running_standby

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

FILE = """
version: 1
name: replica
source: {database: postgres}
tables:
  public.city:
    key: [id]
    columns: {id: integer, name: text, changed_at: timestamptz}
    capture: {poll: {by: changed_at, every: rate(1 day)}}
"""


def test_a_read_replica_is_polled_without_kafka_and_without_a_trace(tmp_path: Path) -> None:
    file = tmp_path / "replica.yaml"
    file.write_text(FILE)
    with (
        running_server() as server,
        running_standby(primary := f"{server}/postgres") as replica,
        lake_in(tmp_path) as lake,
        psycopg.connect(primary, autocommit=True) as connection,
    ):
        missing = lake.run("up", str(file), "--source", f"{replica}", expect=2)
        assert "the source has no such table" in missing["error"]["message"]
        connection.execute(
            "create table city (id int primary key, name text, changed_at timestamptz)"
        )
        connection.execute(
            "insert into city select i, 'n' || i, now() from generate_series(1, 50) i"
        )
        lake.eventually(lambda: has_rows(replica, 50))
        answer = lake.run("up", str(file), "--source", f"{replica}")
        assert answer["kafka"] is None
        assert answer["source"]["password"] is None
        assert answer["polled"] == {"city": {"rows": 50, "error": None}}
        connection.execute("update city set name = 'changed', changed_at = now() where id < 4")
        connection.execute("delete from city where id = 50")
        lake.eventually(lambda: has_rows(replica, 49))
        tables = lake.assert_equal("--deep")
        assert tables["city"]["lake_rows"] == 49
        status = lake.run("status")
        assert status["health"] == "healthy"
        assert {part["name"] for part in status["components"]} == {"aws", "supervisor"}
        [city] = status["tables"]
        assert (city["state"], city["live_rows"], city["polled"]["refused"]) == ("polling", 49, 0)
        assert lake.run("sql", "SELECT count(*) FROM cdclake_quarantine")["rows"] == [[0]]
        assert lake.run("up", str(file), "--source", f"{replica}").get("polled") is None
        assert lake.run("down")["dropped"] == []
        roles = connection.execute("select count(*) from pg_roles where rolname like 'cdclake%'")
        assert roles.fetchall() == [(0,)]


def test_the_first_stream_of_a_lake_that_only_polled_replaces_its_rows(tmp_path: Path) -> None:
    file, logged = tmp_path / "polled.yaml", tmp_path / "logged.yaml"
    with lake_in(tmp_path) as lake, lake.connect() as connection:
        connection.execute(
            "create table city (id int primary key, name text, changed_at timestamptz);"
            " insert into city select i, 'n' || i, now() from generate_series(1, 50) i"
        )
        file.write_text(FILE.replace("database: postgres", f"database: {lake.dsn['dbname']}"))
        logged.write_text(re.sub(r"    capture:.*\n", "", file.read_text()))
        assert lake.run("up", str(file))["polled"] == {"city": {"rows": 50, "error": None}}
        connection.execute("update city set name = 'changed' where id = 1")
        connection.execute("delete from city where id = 50")
        answer = lake.run("up", str(logged), "--wait", "rows")
        assert "epoch 2 began" in answer["did"]
        lake.eventually(lambda: lake.sql("select count(*) from city_current") == [[49]], 120)
        assert lake.sql("select name from city_current where id = 1") == [["changed"]]
        connection.execute("update city set name = 'streamed' where id = 2")
        lake.assert_equal("--deep", "--wait", "120")


def test_status_shows_other_tables_until_a_new_column_is_polled(tmp_path: Path) -> None:
    file = tmp_path / "polled.yaml"
    with lake_in(tmp_path) as lake, lake.connect() as connection:
        for name in ("city", "town"):
            connection.execute(
                f"create table {name} (id int primary key, name text, changed_at timestamptz);"
                f" insert into {name} values (1, 'a', now())"
            )
        text = FILE.replace("database: postgres", f"database: {lake.dsn['dbname']}")
        file.write_text(text + text.partition("tables:\n")[2].replace("public.city", "public.town"))
        assert set(lake.run("up", str(file))["polled"]) == {"city", "town"}
        connection.execute("alter table city add column size int")
        file.write_text(file.read_text().replace("name: text", "name: text, size: integer", 1))
        lake.run("up", str(file))
        shown = {each["table"]: each for each in lake.run("status")["tables"]}
        assert [shown[name]["live_rows"] for name in ("city", "town")] == [None, 1]
        assert {each["state"] for each in shown.values()} == {"polling"}
        lake.run("job", "poll_tables", "--table", "city")
        shown = {each["table"]: each for each in lake.run("status")["tables"]}
        assert [shown[name]["live_rows"] for name in ("city", "town")] == [1, 1]


def has_rows(dsn: str, count: int) -> bool:
    """Whether the replica has as many rows; at first it lacks the table."""
    with psycopg.connect(dsn) as connection:
        [[table]] = connection.execute("select to_regclass('city')").fetchall()
        if table is None:
            return False
        return connection.execute("select count(*) from city").fetchall() == [(count,)]
