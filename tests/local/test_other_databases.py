"""Databases that nobody here made: Pagila, odd names, other servers, other columns."""

import random
import re
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from cdclake.config.resolve import load_plan
from cdclake.local.process.home import Home
from cdclake.postgres.quoting import identifier
from tests.given_folders import given_folder, needs_files
from tests.local.running import PROJECT, SHOP, SHOP_SQL, RunningLake, ShopWriter, lake_in
from tests.local.source_database import load_dump

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

ODD_TABLES = """
create schema "Odd-Schema";
set search_path = "Odd-Schema";
create type mood as enum ('sad', 'ok');
create domain cents as numeric(9,2);
create table "Order Lines" ("Line Id" bigint primary key, "select" text, "it's" cents);
create table "CamelCase" ("Id" int, "Part" text, "Value" double precision,
  primary key ("Id", "Part"));
create table "größe" ("schlüssel" uuid primary key, "naïve" jsonb, "emoji😀" text);
create table "a.b*[c]+(d)|e" ("k.1" text primary key, "v,;:" text);
create table "select" ("from" date primary key, "where" timestamptz, "group" mood);
create table "quo""ted" ("ke""y" smallint primary key, v bytea);
create table "percent%s" (k char(5) primary key, v numeric, i interval, m money);
create table unique_only (a int not null, b text not null, c text, constraint u unique (a, b));
alter table unique_only replica identity using index u;
create table no_key (a int not null, b text);
alter table no_key replica identity full;
create table wide_key (a int, b date, c text, d bigint, v text, primary key (d, c, b, a));
"""


@pytest.fixture
def lake(tmp_path):
    with lake_in(tmp_path) as running:
        yield running


@needs_files("pagila")
def test_pagila(lake: RunningLake, tmp_path: Path) -> None:
    with lake.connect() as connection:
        for part in ("schema", "data"):
            load_dump(make_conninfo(**lake.dsn), given_folder("pagila") / f"pagila-{part}.sql")
        answer = lake.run("up", "pipelines/pagila.yaml")
        assert len(answer["tables"]) >= 8
        _change_pagila(connection, random.Random(7), changes=5000)
    tables = lake.assert_equal("--wait", "300")
    assert tables["payment"]["source_rows"] > 10_000
    assert tables["film"]["omitted_columns"] == ["revenue_projection"]
    assert tables["customer"]["omitted_columns"] == ["active"]
    lake.assert_each_identity_once("rental", "rental_id")
    _derive_addresses(lake, tmp_path)


def _derive_addresses(lake: RunningLake, folder: Path) -> None:
    """The derived table of docs/coming-from.md equals the join in the source, twice."""
    page = (PROJECT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    [declared] = re.findall(r"```yaml\n(derived:.*?)```", page, re.S)
    file = folder / "pagila.yaml"
    file.write_text((PROJECT / "pipelines" / "pagila.yaml").read_text() + declared)
    lake.run("up", str(file))
    joined = (
        "select address_id, address, district, postal_code, c.city_id, city, k.country_id::text,"
        " country, 'pagila' from address a join city c using (city_id)"
        " join country k using (country_id) order by 1"
    )
    shown = (
        "select address_id, address, state_province, postal_code, city_id, city, country_id,"
        " country, source from address_book order by 1"
    )
    changed = (
        "update address set district = 'Moved', city_id = 300 where address_id between 40 and 60",
        "update country set country = 'Renamed' where country_id = 103",
        "update city set country_id = 44 where city_id = 300",
    )
    with lake.connect() as connection:
        for statement in ("select 1", *changed):
            connection.execute(statement)
            lake.assert_equal("--table", "address", "--wait", "300")
            lake.assert_equal("--table", "city")
            lake.assert_equal("--table", "country")
            report = lake.run("job", "refresh_derived")
            assert report["ok"], report
            rows = [list(row) for row in connection.execute(joined).fetchall()]
            assert lake.sql(shown) == rows
            assert len(rows) > 600


def _change_pagila(connection, pick: random.Random, changes: int) -> None:
    statements = [
        "update film set rental_rate = rental_rate + 0.01 where film_id = {n} % 1000 + 1",
        "update film set description = description || '.' where film_id = {n} % 1000 + 1",
        "update customer set activebool = not activebool where customer_id = {n} % 599 + 1",
        "update payment set amount = amount + 0.01 where payment_id = {n} % 16000 + 1",
        "update rental set rental_period = tsrange(lower(rental_period), now()::timestamp) "
        "where rental_id = {n} % 16000 + 1",
        "update country set country = country || '' where country_id = {n} % 109 + 1",
        "delete from film_actor where actor_id = {n} % 200 + 1 and film_id = {m} % 1000 + 1",
        "insert into film_actor values ({n} % 200 + 1, {m} % 1000 + 1) on conflict do nothing",
        "insert into actor (first_name, last_name) values ('A{n}', 'B')",
        "update staff set picture = null where staff_id = 1",
        "update inventory set store_id = 3 - store_id where inventory_id = {n} % 4500 + 1",
    ]
    done = 0
    while done < changes:
        with connection.transaction():
            for _ in range(min(50, changes - done)):
                numbers = {"n": pick.randrange(1 << 20), "m": pick.randrange(1 << 20)}
                connection.execute(pick.choice(statements).format(**numbers))
                done += 1


# Each changes how PostgreSQL writes values. An lc_monetary with a comma needs its locale.
OUTPUT_SETTINGS = ("bytea_output = 'escape'", "intervalstyle = 'sql_standard'")
MONEY_SETTING = "lc_monetary = 'de_DE.UTF-8'"


def test_names_and_keys_of_every_kind(lake: RunningLake, tmp_path: Path) -> None:
    with lake.connect() as connection:
        connection.execute(ODD_TABLES)
        for setting in OUTPUT_SETTINGS:
            connection.execute(f"alter database postgres set {setting}")
        with suppress(psycopg.errors.InvalidParameterValue):
            connection.execute(f"alter database postgres set {MONEY_SETTING}")
        _fill_odd_tables(connection, offset=0)
        dsn = psycopg.conninfo.make_conninfo(**lake.dsn)
        file = tmp_path / "odd.yaml"
        proposal = lake.run("init", "--from-db", dsn, "--schema", "Odd-Schema", "-o", str(file))
        assert len(proposal["tables"]) == 10, proposal["refused"]
        lake.run("validate", str(file))
        lake.run("up", str(file))
        _fill_odd_tables(connection, offset=100)
        _change_odd_tables(connection)
    tables = lake.assert_equal()
    assert len(tables) == 10
    assert all(table["source_rows"] > 0 for table in tables.values())
    names = {table.table: table.name for table in load_plan(file).tables}
    refused = lake.run("resync", names["Order Lines"], expect=2)
    assert "its name has a blank" in refused["error"]["message"]
    for odd in ("größe", "a.b*[c]+(d)|e", 'quo"ted'):
        name = names[odd]
        [read] = lake.run("resync", name)["tables"]
        assert (read["rows"], read["ghosts"]) == (tables[name]["source_rows"], 0)


def _fill_odd_tables(connection, offset: int) -> None:
    for n in range(offset, offset + 20):
        for table, values in (
            ("Order Lines", (n, f"text {n}", "1.25")),
            ("CamelCase", (n, "p'q", 0.1 * n)),
            ("größe", (f"a0eebc99-9c0b-4ef8-bb6d-6bb9bd38{n:04}", '{"ä": 1.10}', "😀" * n)),
            ("a.b*[c]+(d)|e", (f"k {n}", None)),
            ("select", (f"20{n % 90 + 10}-01-{n % 28 + 1:02}", "2024-01-01 00:00:00+05", "ok")),
            ('quo"ted', (n, b"\x00\xff")),
            ("percent%s", (f"k{n}", "123456789012345678901234567890.123", "1 mon 3 days", str(n))),
            ("unique_only", (n, "b", "c")),
            ("no_key", (n, "x")),
            ("wide_key", (n, "2024-02-29", "c", n, None)),
        ):
            marks = ", ".join(["%s"] * len(values))
            name = identifier(table).replace("%", "%%")
            connection.execute(
                f"insert into {name} values ({marks}) on conflict do nothing", values
            )


def _change_odd_tables(connection) -> None:
    for statement in (
        'update "Order Lines" set "Line Id" = "Line Id" + 1000 where "Line Id" < 5',
        'update "CamelCase" set "Value" = \'NaN\' where "Id" = 3',
        'delete from "größe" where "emoji😀" = \'\'',
        'update "a.b*[c]+(d)|e" set "v,;:" = \'new\' where "k.1" > \'k 5\'',
        'update "select" set "group" = \'sad\', "where" = null',
        'update "quo""ted" set "ke""y" = "ke""y" + 500 where "ke""y" < 3',
        "delete from unique_only where a % 2 = 0",
        "update unique_only set b = 'other' where a = 3",
        "update no_key set b = null where a = 4",
        "delete from no_key where a = 5",
        "update wide_key set b = '2025-01-01', v = 'moved' where a = 7",
        'truncate "percent%s"',
        "insert into \"percent%s\" values ('after', '1.10', '1 year -2 days 4:05:06.7', 1234.56)",
        "insert into \"percent%s\" values ('less', 'NaN', '-1 mon', -0.5)",
    ):
        connection.execute(statement)


def test_a_given_source_is_left_as_it_was(lake: RunningLake, tmp_path: Path) -> None:
    with lake_in(tmp_path / "other") as owner, owner.connect() as connection:
        connection.execute(SHOP_SQL)
        dsn = psycopg.conninfo.make_conninfo(**owner.dsn)
        lake.run("up", str(SHOP), "--source", dsn)
        ShopWriter(connection, seed=6).change(transactions=20)
        lake.assert_equal()
        lake.run("down")
        leftovers = connection.execute(
            "select slot_name from pg_replication_slots union all"
            " select pubname from pg_publication union all"
            " select nspname from pg_namespace where nspname = 'cdclake'"
        ).fetchall()
        assert leftovers == []
        connection.execute("delete from customers where customer_id between 100 and 150")
        connection.execute("insert into orders values (4242424, 1)")
        lake.run("up", str(SHOP), "--source", dsn)
        lake.assert_equal()
        assert lake.run("status")["epoch"] == 2
        lake.run("down")


def test_column_policies(lake: RunningLake, tmp_path: Path) -> None:
    file = tmp_path / "policies.yaml"
    file.write_text(
        "version: 1\nname: policies\nsource: {database: postgres}\ntables:\n"
        "  public.people:\n    key: [id]\n    columns:\n      id: bigint\n      name: text\n"
        "      email: {type: text, mask: hash}\n      phone: {type: text, mask: truncate(3)}\n"
        "      ssn: {type: text, exclude: true}\n"
    )
    with lake.connect() as connection:
        connection.execute(
            "create table people (id bigint primary key, name text, email text, phone text,"
            " ssn text, undeclared text);"
            "insert into people values (1, 'a', 'a@example.org', '123456', 'secret', 'u')"
        )
        lake.run("up", str(file))
        connection.execute("insert into people values (2, 'b', null, '98', 'secret', 'u')")
        connection.execute("update people set ssn = 'other secret' where id = 1")
    tables = lake.assert_equal()
    assert sorted(tables["people"]["omitted_columns"]) == ["ssn", "undeclared"]
    rows = lake.sql("select id, email, phone from people_current order by id")
    assert rows[0][1] != "a@example.org" and len(rows[0][1]) == 64
    assert rows[0][2] == "123"
    assert rows[1] == [2, None, "98"]
    everything = lake.sql("select * from people_changes")
    assert "secret" not in str(everything)
    home = Home(lake.home)
    assert home.secret("mask_salt") not in home.log("connect").read_text()


NARROW = ("n: int", "label: varchar(10)", "price: 'numeric(8,2)'")
WIDENED = ("n: bigint", "label: text", "price: 'numeric(12,2)'", "note: text", "seen: date")
WRONG = ("n: date", "label: text", "price: 'numeric(12,2)'", "note: text")


def test_columns_are_added_and_widened(lake: RunningLake, tmp_path: Path) -> None:
    before, after, wrong = (_things(tmp_path, *columns) for columns in (NARROW, WIDENED, WRONG))
    with lake.connect() as connection:
        connection.execute(
            "create table things (id bigint primary key, n int, label varchar(10),"
            " price numeric(8,2));"
            "insert into things select i, i, 'label', i / 100.0 from generate_series(1, 2000) i"
        )
        lake.run("up", str(before))
        connection.execute("update things set n = -n where id % 10 = 0")
        lake.assert_equal()
        [[then]] = lake.sql("select now()::varchar")
        connection.execute(
            "alter table things add note text default 'none', add seen date, alter n type bigint,"
            " alter label type text, alter price type numeric(12,2)"
        )
        connection.execute("update things set note = 'early' where id = 1")
        lake.run("up", str(after))
        connection.execute("update things set n = 3000000000, price = 1234567890.12 where id = 2")
        connection.execute("update things set label = repeat('long', 20), seen = '2026-01-01'")
        connection.execute("delete from things where id = 3")
    lake.eventually(lambda: lake.run("verify", expect=None)["ok"], seconds=120)
    assert lake.sql("select note, count(*) from things_current group by 1 order by 2") == [
        ["early", 1],
        ["none", 1998],
    ]
    assert lake.sql("select n, price from things_current where id = 2") == [
        [3_000_000_000, "1234567890.12"]
    ]
    old = lake.run("sql", "select count(*), count(note) from things_current", "--at", then)
    assert old["rows"] == [[2000, 0]]
    refused = lake.run("up", str(wrong), expect=2)["error"]["message"]
    assert "column 'n' changed from bigint to date" in refused
    assert "seen" not in refused  # a column may go


def _things(folder: Path, *columns: str) -> Path:
    file = folder / f"things-{len(list(folder.iterdir()))}.yaml"
    file.write_text(
        "version: 1\nname: things\nsource: {database: postgres}\ntables:\n  public.things:\n"
        "    key: [id]\n    columns:\n      id: bigint\n"
        + "".join(f"      {column}\n" for column in columns)
    )
    return file
