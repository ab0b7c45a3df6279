"""Columns that the source changes before the file does: widened ones, and a name taken again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from cdclake.firehose.erased_rows import REGISTER_SECONDS
from tests.local.running import RunningLake, streamed_lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

CREATED = """
create table counted (id int primary key, n int not null, price numeric(6,2));
create table renamed (id bigint primary key, mail text);
create table delivered (id int primary key, n int not null);
insert into counted select i, i, i from generate_series(1, 50) i;
insert into delivered select i, i from generate_series(1, 50) i;
insert into renamed select i, i || '@example.org' from generate_series(1, 50) i;
"""
PIPELINE = """\
version: 1
name: wider
source: {database: postgres}
firehose: {buffer: {seconds: 2}, function: {seconds: 1}}
tables:
  public.counted:
    key: [id]
    columns:
      id: int
      n: int
      price: numeric(6,2)
  public.delivered:
    delivery: firehose
    key: [id]
    columns: {id: int, n: int}
  public.renamed:
    key: [id]
    columns:
      id: bigint
      email: {type: text, renamed_from: mail}
"""
LARGE = 3_000_000_000


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    with streamed_lake_in(tmp_path_factory.mktemp("lake"), PIPELINE, CREATED) as running:
        yield running


def table_of(lake: RunningLake, name: str) -> dict[str, object]:
    return next(t for t in lake.run("status")["tables"] if t["table"] == name)


def test_widened_columns_are_widened_and_reported(lake: RunningLake) -> None:
    with lake.connect() as connection:
        connection.execute("alter table counted alter column n type bigint")
        connection.execute("alter table counted alter column price type numeric(12,2)")
        connection.execute(f"update counted set n = {LARGE} + id where id <= 5")
        connection.execute(f"insert into counted values (100, {LARGE}, 12345678.25)")
    time.sleep(5)  # the stream meets the values before any check does

    changes = table_of(lake, "counted")["source_changes"]
    assert isinstance(changes, list)
    assert {change["column"]: change["remedy"].split(";")[0] for change in changes} == {
        "n": "write `'n': bigint`",  # quoted: some YAML readers take `n` for false
        "price": "write `price: numeric(12,2)`",
    }
    query = "select n from counted_current where id = 100"
    lake.eventually(lambda: lake.sql(query) == [[LARGE]], 90)
    lake.eventually(lambda: table_of(lake, "counted")["state"] == "streaming")
    lake.assert_equal()
    assert lake.sql("select count(*) from counted_current where n > 2147483647") == [[6]]


def test_running_firehose_follows_a_widened_column(lake: RunningLake) -> None:
    def update(number: int) -> None:
        with lake.connect() as connection:
            connection.execute(f"update delivered set n = {LARGE} where id = {number}".encode())

    with lake.connect() as connection:
        connection.execute("alter table delivered alter column n type bigint")
    update(1)
    time.sleep(5)  # the function meets the value before any check does
    lake.eventually(lambda: table_of(lake, "delivered")["failed"] == 1, 60)
    changelog = "select typeof(n) from delivered_changes limit 1"
    lake.eventually(lambda: lake.sql(changelog) == [["BIGINT"]], 60)
    time.sleep(REGISTER_SECONDS)
    update(2)
    large = f"select id from delivered_current where n = {LARGE} order by id"
    lake.eventually(lambda: lake.sql(large) == [[2]], 60)
    answer = lake.run("redrive")
    assert (answer["redriven"], answer["quarantined"]) == ({"delivered_changes": 1}, {})
    lake.eventually(lambda: lake.sql(large) == [[1], [2]], 60)
    lake.assert_equal()


def test_a_file_that_has_not_followed_is_applied_again(lake: RunningLake) -> None:
    file = lake.home.parent / "pipeline.yaml"
    lake.run("up", str(file))
    with lake.connect() as connection:
        connection.execute(f"update counted set n = {LARGE} * 2 where id = 7")
    lake.assert_equal()
    file.write_text(PIPELINE.replace("n: int\n", "n: bigint\n"))
    lake.run("up", str(file))
    changes = table_of(lake, "counted")["source_changes"]
    assert isinstance(changes, list) and [c["column"] for c in changes] == ["price"]
    lake.assert_equal()


def test_a_new_column_of_an_earlier_name_stays_in_the_database(lake: RunningLake) -> None:
    """B16: the connector takes the renamed column under that name, too."""
    with lake.connect() as connection:
        connection.execute("alter table renamed rename column mail to email")
        connection.execute("update renamed set email = 'new@example.org' where id = 1")
        connection.execute("alter table renamed add column mail text default 'undeclared-default'")
        connection.execute("update renamed set mail = 'undeclared-secret' where id = 2")
        connection.execute("insert into renamed values (200, 'x@example.org', 'undeclared-new')")
    lake.eventually(
        lambda: lake.sql("select mail from renamed_current where id = 200") == [["x@example.org"]],
        90,
    )
    assert b"undeclared" not in topic(lake, "wider.public.renamed")
    changes = table_of(lake, "renamed")["source_changes"]
    assert isinstance(changes, list)
    [change] = changes
    assert (change["column"], "exclude: true" in change["remedy"]) == ("mail", True)
    file: Path = lake.home.parent / "pipeline.yaml"
    file.write_text(file.read_text() + "      mail: {exclude: true}\n")
    lake.run("up", str(file))
    lake.run("resync", "renamed")
    assert b"undeclared" not in topic(lake, "wider.public.renamed")
    lake.assert_equal()


def topic(lake: RunningLake, name: str) -> bytes:
    """All values in a topic, joined."""
    consumer = Consumer(
        {
            **lake.endpoints.kafka.settings,
            "group.id": f"reading-{time.monotonic_ns()}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([name])
    found, quiet = [], 0
    while quiet < 10:
        record = consumer.poll(1.0)
        if record is None or record.error():
            quiet += 1
            continue
        found.append(record.value() or b"")
    consumer.close()
    return b"\n".join(found)
