"""Columns that change in a source while it is written to, before and after the file says so."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

TABLES = ("dropped", "renamed", "again", "listed", "steady")
COLUMNS = {
    "dropped": ["y: text"],
    "renamed": ["mail: {type: text, mask: hash}"],
    "again": ["y: int"],
    "listed": ["y: text", "secret: {exclude: true}"],
    "steady": ["m: int"],
}
CREATED = """
create table dropped (id bigint primary key, n int not null, y text);
create table renamed (id bigint primary key, n int not null, mail text not null);
create table again (id bigint primary key, n int not null, y int);
create table listed (id bigint primary key, n int not null, y text, secret text);
create table steady (id bigint primary key, n int not null, m int);
insert into dropped select i, i, 'y' || i from generate_series(1, 500) i;
insert into renamed select i, i, i || '@example.org' from generate_series(1, 500) i;
insert into again select i, i, i from generate_series(1, 500) i;
insert into listed select i, i, 'y' || i, 'hidden' from generate_series(1, 500) i;
insert into steady select i, i from generate_series(1, 500) i;
"""


def pipeline(folder: Path, **changed: list[str]) -> str:
    """A file with these columns beside `id` and `n`."""
    lines = ["version: 1", "name: columns", "source: {database: postgres}", "tables:"]
    for table, columns in {**COLUMNS, **changed}.items():
        lines += [f"  public.{table}:", "    key: [id]", "    columns:", "      id: bigint"]
        lines += [f"      {column}" for column in ("n: int", *columns)]
    file = folder / f"columns-{len(list(folder.iterdir()))}.yaml"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


@contextmanager
def written_to(lake: RunningLake) -> Iterator[None]:
    """Every table is written to, while the block lasts."""
    stop = threading.Event()

    def write() -> None:
        number = 1000
        with psycopg.connect(**lake.dsn, autocommit=True) as connection:
            while not stop.wait(0.02):
                number += 1
                for table in TABLES:
                    connection.execute(
                        f"update {table} set n = n + 1 where id = {number % 500 + 1}"
                    )
                connection.execute(f"insert into steady values ({number}, 1)")
                connection.execute(f"insert into dropped values ({number}, 1)")
                connection.execute(f"delete from dropped where id = {number - 5}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def tables_of(lake: RunningLake) -> dict[str, dict[str, Any]]:
    return {table["table"]: table for table in lake.run("status")["tables"]}


def stopped(lake: RunningLake) -> set[str]:
    return {name for name, table in tables_of(lake).items() if table["state"] == "stopped"}


def test_columns_are_dropped_renamed_and_come_again_under_writes(tmp_path: Path) -> None:
    with lake_in(tmp_path) as lake, lake.connect() as connection:
        connection.execute(CREATED)
        first = pipeline(tmp_path)
        lake.run("up", first)
        lake.assert_equal()
        [[then]] = lake.sql("select now()::varchar")
        with written_to(lake):
            _change_the_source_first(connection)
            lake.eventually(lambda: stopped(lake) == {"dropped", "renamed", "again"}, 90)
            _what_status_says(lake, Path(first))
            _mend(lake, tmp_path)
            _widen_a_listed_column(connection)
            _declare_a_new_name_first(lake, connection, tmp_path)
            connection.execute("update steady set m = 3000000000 where id < 20")
        lake.eventually(lambda: lake.run("verify", expect=None)["ok"], 180)
        tables = lake.assert_equal()
        assert tables["listed"]["omitted_columns"] == ["secret"]
        _what_the_lake_keeps(lake)
        query = "select count(*), count(y), (select count(y) from again_history) from again_current"
        assert lake.run("sql", query, "--at", then)["rows"] == [[500, 0, 0]]


def _change_the_source_first(connection: "psycopg.Connection[Any]") -> None:
    connection.execute("alter table dropped drop column y")
    connection.execute("alter table renamed rename column mail to email")
    connection.execute("update renamed set email = 'late@example.org' where id = 7")
    connection.execute("insert into renamed values (7000, 1, 'new@example.org')")
    connection.execute("alter table again drop column y")
    connection.execute("update again set n = -1 where id = 1")
    connection.execute("alter table again add column y text not null default 'again'")
    connection.execute("alter table again alter column n drop not null")
    connection.execute("insert into again values (7000, null, 'x')")
    # The publication lists this table's columns, since one is excluded.
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="cannot drop column y"):
        connection.execute("alter table listed drop column y")
    connection.execute("alter table listed drop column y cascade")  # no more published
    connection.execute("delete from listed where id between 100 and 120")
    connection.execute("alter table steady add column more text default 'm'")


def _what_status_says(lake: RunningLake, file: Path) -> None:
    tables = tables_of(lake)
    lines = file.read_text().splitlines()
    for name, column in (("dropped", "y"), ("renamed", "mail"), ("again", "y")):
        table = tables[name]
        assert f"no longer have the column '{column}'" in table["last_error"]
        [line] = table["lines"]
        assert lines[line - 1].strip().startswith(f"{column}:")
        assert f"public.{name}:" in lines[line - 6]
        assert table["gap"]["events"] > 0 and table["gap"]["lost_events"] == 0
        kept = datetime.fromisoformat(table["gap"]["kept_until"]) - datetime.now(UTC)
        assert timedelta(days=6, hours=23) < kept <= timedelta(days=7)
        assert table["quarantined"] == 0
    assert tables["steady"]["state"] == "streaming" and tables["steady"]["gap"] is None
    [more] = tables["steady"]["source_changes"]
    assert (more["column"], "`more: text`" in more["remedy"]) == ("more", True)
    remedies = [change["remedy"] for change in tables["renamed"]["source_changes"]]
    assert any("`email: {type: text, mask: hash, renamed_from: mail}`" in r for r in remedies)
    report = lake.run("verify", "--table", "dropped", expect=1)
    assert report["tables"][0]["state"] == "stopped"


def _mend(lake: RunningLake, folder: Path) -> None:
    email = "email: {type: text, mask: hash, renamed_from: mail}"
    mended = {"dropped": [], "renamed": [email], "listed": ["secret: {exclude: true}"]}
    said = lake.run("up", pipeline(folder, **mended, again=["y: text"]), expect=2)
    assert "column 'y' changed from integer to text" in said["error"]["message"]
    lake.run("up", pipeline(folder, **mended, again=[]))
    lake.eventually(lambda: stopped(lake) == set(), 90)
    lake.run("up", pipeline(folder, **mended, again=["y: text"]))


def _widen_a_listed_column(connection: "psycopg.Connection[Any]") -> None:
    """As the README says: the table's columns are listed since one is not declared."""
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="used by a publication"):
        connection.execute("alter table steady alter column m type bigint")
    with connection.transaction():
        connection.execute("lock table steady")
        connection.execute("alter publication cdclake_columns drop table steady")
        connection.execute("alter table steady alter column m type bigint")
        connection.execute("alter publication cdclake_columns add table steady (id, n, m)")
    connection.execute("update steady set m = 7 where id < 50")


def _declare_a_new_name_first(
    lake: RunningLake, connection: "psycopg.Connection[Any]", folder: Path
) -> None:
    lake.eventually(lambda: lake.run("verify", "--table", "renamed", expect=None)["ok"], 120)
    post = "post: {type: text, mask: hash, renamed_from: [mail, email]}"
    mended = {"dropped": [], "again": ["y: text"], "listed": ["secret: {exclude: true}"]}
    lake.run("up", pipeline(folder, **mended, renamed=[post], steady=["m: bigint"]))
    lake.run("verify", "--table", "renamed", expect=None)
    connection.execute("alter table renamed rename column email to post")
    connection.execute("update renamed set post = 'third@example.org' where id = 8")


def _what_the_lake_keeps(lake: RunningLake) -> None:
    assert stopped(lake) == set()
    rows = lake.sql("select count(distinct cdc_dropped_y) from dropped_changes")
    assert rows == [[500]]
    assert lake.sql("select count(*) from again_current where y <> 'again'") == [[1]]
    assert lake.sql("select count(*) from again_changes where cdc_dropped_y = 5") != [[0]]
    missing = "select count(*) from renamed where cdc_toast_missing is not null"
    lake.eventually(lambda: lake.sql(missing) == [[0]])
    everything = lake.sql("select mail from renamed_changes where mail like '%@%'")
    assert everything == []  # masked under each of its names
    lake.assert_each_identity_once("dropped", "id")
    lake.assert_each_identity_once("renamed", "id")


def test_a_gap_that_kafka_has_lost_is_told_and_resync_mends_it(tmp_path: Path) -> None:
    with lake_in(tmp_path) as lake, lake.connect() as connection:
        connection.execute(CREATED)
        kafka = lake.run("up", pipeline(tmp_path))["kafka"]
        connection.execute("alter table dropped drop column y")
        connection.execute("delete from dropped where id <= 50")
        connection.execute("insert into dropped values (7000, 1)")
        lake.eventually(lambda: stopped(lake) == {"dropped"}, 60)
        connection.execute("insert into dropped values (7001, 1)")
        lake.assert_equal("--table", "steady")  # the stream itself is past what is deleted now
        assert tables_of(lake)["dropped"]["gap"]["events"] >= 2
        _delete_records(kafka, "columns.public.dropped")
        connection.execute("insert into dropped values (7002, 1)")
        lake.eventually(lambda: tables_of(lake)["dropped"]["gap"]["events"] == 1)
        table = tables_of(lake)["dropped"]
        assert table["gap"]["lost_events"] >= 2
        assert "cdclake resync dropped" in table["last_error"]

        lake.run("up", pipeline(tmp_path, dropped=[]))
        lake.eventually(
            lambda: "cannot be read from Kafka" in tables_of(lake)["dropped"]["last_error"]
        )
        connection.execute("update steady set n = 5")
        lake.assert_equal("--table", "steady")
        lake.run("resync", "dropped")
        tables = lake.assert_equal()
        assert tables["dropped"]["source_rows"] == 453
        assert tables_of(lake)["dropped"]["gap"] is None

        connection.execute('alter table steady add column "N" int')  # in the lake it would be n
        connection.execute("update steady set n = 6")
        lake.assert_equal("--table", "steady")
        [twin] = tables_of(lake)["steady"]["source_changes"]
        assert (twin["column"], "`N: {exclude: true}`" in twin["remedy"]) == ("N", True)


def _delete_records(kafka: str, topic: str) -> None:
    """What Kafka's retention does, at once."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    from local.topics import end_offsets

    end = end_offsets(kafka, [topic])[topic][0]
    admin = AdminClient({"bootstrap.servers": kafka})
    [deleted] = admin.delete_records([TopicPartition(topic, 0, end)]).values()
    deleted.result(20)
