"""Polled tables of a running lake: next to streamed ones, and when they change to the log."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.local.erased_lake import erased_of
from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(1200)]

TABLES = """
create table country (country_id int primary key, country text not null,
  last_update timestamp not null default now());
create table city (city_id int primary key, city text not null,
  country_id int not null references country, last_update timestamptz not null default now());
create table address (address_id int primary key, address text not null, district text,
  city_id int not null references city, phone text, tags text[], weight real,
  last_update timestamptz not null default now());
create table orders (id bigint primary key, v text);
create view places as select city_id, city, country, greatest(city.last_update,
  country.last_update::timestamptz) as last_update from city join country using (country_id);
insert into country (country_id, country) select i, 'Country ' || i from generate_series(1, 20) i;
insert into city (city_id, city, country_id)
  select i, 'City ' || i, 1 + i % 20 from generate_series(1, 200) i;
insert into address select i, i || ' Road', case when i % 2 = 0 then 'D' || i end, 1 + i % 200,
  i::text, array['a', i::text], i / 3.0, now() from generate_series(1, 2000) i;
insert into orders values (1, 'a');
"""
FILE = """
version: 1
name: polls
source: {database: polls}
tables:
  public.orders: {key: [id], columns: {id: bigint, v: text}}
  public.country:
    key: [country_id]
    columns: {country_id: integer, country: text, last_update: timestamp}
    capture: {poll: {by: last_update, every: rate(1 day)}}
  public.city:
    key: [city_id]
    columns: {city_id: integer, city: text, country_id: integer, last_update: timestamptz}
    capture: {poll: {by: last_update, every: rate(1 day), deletes: none}}
  public.address:
    key: [address_id]
    columns: {address_id: integer, address: text, district: text, city_id: integer,
      phone: {type: text, mask: hash}, tags: "text[]", weight: real, last_update: timestamptz}
    capture: {poll: {by: last_update, every: rate(1 day), sweep_every: rate(7 days)}}
  public.places:
    key: [city_id]
    columns: {city_id: integer, city: text, country: text, last_update: timestamptz}
    capture: {poll: {by: last_update, every: rate(1 day)}}
  public.districts:
    key: [district]
    columns: {district: text, addresses: bigint, newest: timestamptz}
    capture:
      poll:
        by: newest
        every: rate(1 day)
        query: |
          SELECT district, count(*) AS addresses, max(a.last_update) AS newest
          FROM public.address AS a WHERE district IS NOT NULL GROUP BY district
"""
CHANGES = """
update address set address = 'first', last_update = now() where address_id = 100;
update address set address = 'second', last_update = now() where address_id = 100;
update address set district = 'D4', phone = '5', last_update = now() where address_id = 200;
insert into address values (3000, 'new', null, 7, '7', '{}', 'NaN', now());
update country set country = 'Moved', last_update = now() where country_id = 3;
delete from address where address_id = 104;
delete from country where country_id = 20 and false;
insert into city values (300, 'New', 1, now());
insert into orders values (2, 'b');
"""


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[RunningLake]:
    with lake_in(tmp_path) as running:
        with running.connect() as connection:
            connection.execute(TABLES)
        yield running


def test_polled_tables_equal_the_source_and_move_to_the_log_and_back(
    lake: RunningLake, tmp_path: Path
) -> None:
    file, logged = tmp_path / "polls.yaml", tmp_path / "logged.yaml"
    file.write_text(FILE.replace("database: polls", f"database: {lake.dsn['dbname']}"))
    answer = lake.run("up", str(file))
    assert answer["polled"]["address"] == {"rows": 2000, "error": None}
    tables = lake.assert_equal("--deep")
    assert tables["places"]["source_rows"] == 200
    assert tables["districts"]["source_rows"] == 1000

    with lake.connect() as connection:
        connection.execute(CHANGES)
        lake.run("job", "poll_tables")
        equal = ("country", "places", "orders")
        for table in equal:
            lake.assert_equal("--table", table, "--wait", "120")
        # Only a sweep finds a deleted row, and `address` sweeps once a week.
        kept = lake.sql("select address_id, address from address_current where address_id = 104")
        assert kept == [[104, "104 Road"]]
        assert lake.sql("select address from address_current where address_id = 100") == [
            ["second"]
        ]
        events = lake.sql("select cdc_op, count(*) from address_changes group by 1")
        assert events == [["r", 2003]]
        _erases_rows(lake, connection)
        _moves_to_the_log(lake, connection, file, logged)


def _erases_rows(lake: RunningLake, connection: "psycopg.Connection[Any]") -> None:
    row = "insert into address values (4000, %s, null, 7, 'unlisted', '{}', 0.5, now())"
    connection.execute(row, ["221b Baker Street"])
    lake.run("job", "poll_tables", "--table", "address")
    street = "update address set address = %s, last_update = now() where address_id = 4000"
    connection.execute(street, ["Reichenbach Falls"])
    lake.run("job", "poll_tables", "--table", "address")
    connection.execute("delete from address where address_id = 4000")
    report = lake.run("forget", "address", "4000", "--yes", "--grace", "2s")
    assert (report["stored"], report["position"]) == ([], None)
    assert erased_of(report, "events") == {"address_changes": 2}
    assert erased_of(report, "rows") == {"address": 1}
    found = "select (select count(*) from address_changes where address_id = 4000),"
    found += " (select count(*) from address_current where address_id = 4000)"
    assert lake.sql(found) == [[0, 0]]
    connection.execute(row, ["again"])
    lake.run("job", "poll_tables", "--table", "address")
    assert lake.sql(found) == [[1, 1]]


def _moves_to_the_log(
    lake: RunningLake, connection: "psycopg.Connection[Any]", file: Path, logged: Path
) -> None:
    text = file.read_text()
    logged.write_text(re.sub(r"(weight: real.*?\n)    capture:.*\n", r"\1", text))
    connection.execute("delete from address where address_id = 4000")  # of the newest poll
    lake.run("up", str(logged), "--wait", "rows")
    gone = "select count(*) from address_current where address_id in (104, 4000)"
    lake.eventually(lambda: lake.sql(gone) == [[0]], seconds=120)
    connection.execute("update address set address = 'by the log' where address_id = 5")
    connection.execute("delete from address where address_id = 6")
    lake.assert_equal("--table", "address", "--wait", "120")

    connection.execute("update address set address = 'in between' where address_id = 7")
    lake.assert_equal("--table", "address", "--wait", "120")
    lake.run("up", str(file))
    connection.execute("update address set address = 'silent' where address_id = 8")
    connection.execute("delete from address where address_id = 9")
    lake.run("job", "poll_tables", "--table", "address")
    # The first poll after the log reads all rows; `up` has done that, before these changes.
    assert lake.sql("select count(*) from address_current where address_id = 9") == [[1]]
    swept = text.replace("sweep_every: rate(7 days)", "deletes: sweep")
    file.write_text(swept)
    lake.run("up", str(file))
    lake.assert_equal("--deep", "--wait", "120")
