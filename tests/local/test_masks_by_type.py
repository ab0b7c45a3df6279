"""Tokens, redacted texts, months and NULLs on the real lake: every type, streamed and polled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

# A value of each type, large if the type can be stored out of line.
VALUES = {
    "boolean": "true", "smallint": "7", "integer": "7", "bigint": "7", "oid": "7", "real": "1.5",
    "double precision": "1.5", "numeric": "1.5", "numeric(12,2)": "1.5", "money": "1.5::money",
    "date": "'2024-02-17'", "timestamp": "now()", "timestamptz": "now()", "time": "'10:20'",
    "timetz": "'10:20+02'", "interval": "'1 day'", "bytea": "convert_to(repeat('b', 90), 'utf8')",
    "uuid": "gen_random_uuid()", "text": "repeat('t', 900)", "varchar(400)": "repeat('v', 400)",
    "char(100)": "repeat('c', 50)", "citext": "repeat('C', 90)", "json": "to_json(repeat('j', 90))",
    "jsonb": "to_jsonb(repeat('j', 90))", "xml": "'<a/>'", "hstore": "hstore('k', repeat('h', 90))",
    "ltree": "(repeat('l.', 40) || 'e')::ltree", "inet": "'10.0.0.1'", "cidr": "'10.0.0.0/8'",
    "macaddr": "'08:00:2b:01:02:03'", "macaddr8": "'08:00:2b:01:02:03:04:05'",
    "bit(400)": "repeat('10', 200)::bit(400)", "varbit": "repeat('10', 99)::varbit",
    "tsvector": "'a b c'", "int4range": "'[1,5)'", "int8range": "'[1,5)'", "numrange": "'[1,5)'",
    "tsrange": "'[2024-01-01,)'", "tstzrange": "'[2024-01-01,)'", "daterange": "'[2024-01-01,)'",
    "point": "'(1,2)'", "enum": "'sad'", "integer[]": "array_fill(7, array[90])",
    "boolean[]": "array_fill(true, array[90])", "numeric[]": "array_fill(1.5, array[90])",
    "text[]": "array_fill('text'::text, array[90])",
    "bytea[]": "array_fill('\\x00'::bytea, array[9])",
    "enum[]": "array_fill('sad'::mood, array[9])",
}  # fmt: skip
NULLED = {f"n{index}": (kind, value) for index, (kind, value) in enumerate(VALUES.items())}
MASKED = {
    "mail": "{type: text, mask: token}", "mail20": "{type: varchar(300), mask: token}",
    "mailci": "{type: citext, mask: token}", "badge": "{type: uuid, mask: token}",
    "code": "{type: char(90), mask: token}", "note": "{type: text, mask: redact}",
    "serial": "{type: uuid, mask: redact}", "born": "{type: date, mask: month}",
    "gone": "{type: text, mask: null}",
}  # fmt: skip
PEOPLE = """
create table {table} (id bigint primary key, v int, mail text, mail20 varchar(300) not null,
  mailci citext, badge uuid, code char(90), note text, serial uuid, born date not null, gone text,
  changed timestamptz not null default now());
alter table {table} set (toast_tuple_target = 128);
update pg_attribute set attstorage = 'e' where attrelid = '{table}'::regclass and attlen = -1;
insert into {table} select i, 1, m, m, m, u, m, repeat('Note ' || i, 400), u, date '1987-02-01' + i,
  repeat('gone', 90) from (select i, repeat('ä' || i % 50, 30) as m, md5((i % 50)::text)::uuid as u
  from generate_series(1, 200) i) as rows;
insert into {table} (id, mail20, born) values (901, '', '0099-12-31'), (902, 'x', '5874897-12-31');
"""
CHANGED = """
update {table} set v = v + 1, changed = now();
update {table} set v = null, mail = 'ä', changed = now() where id % 10 = 1;
update {table} set mail = null, note = null, badge = null, born = '2000-02-29', changed = now()
  where id % 10 = 3;
"""


def created() -> str:
    """Statements that create the tables and their rows."""
    columns = ", ".join(
        f"{name} {kind.replace('enum', 'mood')} not null" for name, (kind, _) in NULLED.items()
    )
    values = ", ".join(value for _, value in NULLED.values())
    return f"""
create extension if not exists citext; create extension if not exists hstore;
create extension if not exists ltree; create type mood as enum ('sad', 'happy');
{PEOPLE.format(table="people")} {PEOPLE.format(table="polled")}
create table nulled (id bigint primary key, v int, {columns});
alter table nulled set (toast_tuple_target = 128);
update pg_attribute set attstorage = 'e' where attrelid = 'nulled'::regclass and attlen = -1;
insert into nulled select i, 1, {values} from generate_series(1, 20) i;
create table polled_nulled (like nulled including all, changed timestamptz default now());
insert into polled_nulled select *, now() from nulled;
"""


def pipeline(folder: Path) -> str:
    """A pipeline file of the tables, two of which are polled."""
    nulled = {name: f"{{type: '{kind}', mask: null}}" for name, (kind, _) in NULLED.items()}
    poll = "    capture: {poll: {by: changed, every: rate(1 day)}}"
    not_polled = ("hstore",)  # Debezium writes maps in an order that SQL cannot follow
    lines = ["version: 1", "name: masks", "source: {database: postgres}", "tables:"]
    for table, columns in (("people", MASKED), ("polled", MASKED), ("nulled", nulled)):
        lines += [f"  public.{table}:", "    key: [id]"]
        lines += [poll] if table == "polled" else []
        lines += ["    columns:", "      id: bigint", "      v: int"]
        lines += [f"      {name}: {kind}" for name, kind in columns.items()]
        lines += ["      changed: timestamptz"] if columns is MASKED else []
    lines += ["  public.polled_nulled:", "    key: [id]", poll, "    columns:", "      id: bigint"]
    lines += [
        f"      {name}: " + ("{exclude: true}" if NULLED[name][0] in not_polled else kind)
        for name, kind in nulled.items()
    ]
    lines += ["      v: int", "      changed: timestamptz"]
    file = folder / "masks.yaml"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    folder = tmp_path_factory.mktemp("masks")
    with lake_in(folder) as running:
        with running.connect() as connection:
            connection.execute(created())
        running.run("up", pipeline(folder))
        running.run("job", "poll_tables")
        yield running


def assert_masked(lake: RunningLake) -> None:
    """Lake and source are equal after their masks, and nothing of the clear values is left."""
    lake.assert_equal()
    for table in ("people", "polled"):
        [[notes, serials, late, clear, left]] = lake.sql(
            "select count(*) filter (note <> '***'), count(*) filter (serial::text <> '***'),"
            " count(*) filter (day(born) <> 1), count(gone),"
            f" count(*) filter (length(mail) <> 64) from {table}_current"
        )
        assert (notes, serials, late, clear, left) == (0, 0, 0, 0, 0)
    for table in ("nulled", "polled_nulled"):
        names = ", ".join(name for name, (kind, _) in NULLED.items() if kind != "hstore")
        [row] = lake.sql(f"select count(columns([{_quoted(names)}])) from {table}_changes")
        assert set(row) == {0} and len(row) >= len(NULLED) - 1


def _quoted(names: str) -> str:
    return ", ".join(f"'{name}'" for name in names.split(", "))


def test_every_type_is_masked_streamed_and_polled(lake: RunningLake) -> None:
    assert_masked(lake)
    with lake.connect() as connection:
        for table in ("people", "polled"):
            connection.execute(CHANGED.format(table=table))
        connection.execute("update people set id = id + 1000 where id % 10 = 2")
        connection.execute("update nulled set v = 2")
        connection.execute("update polled_nulled set v = 2, changed = now()")
    lake.run("job", "poll_tables")
    assert_masked(lake)
    unsent = "select count(*) from people_changes where list_contains(cdc_unavailable, '{}')"
    assert lake.sql(unsent.format("note")) > [[200]] and lake.sql(unsent.format("gone")) == [[0]]


def test_tokens_join_across_tables_types_and_lengths(lake: RunningLake) -> None:
    [[joined, badges]] = lake.sql(
        "select count(*), count(*) filter (p.badge = q.badge) from people_current p"
        " join polled_current q on p.mail20 = q.mailci where p.id = 107 and q.id % 50 = 7"
    )
    assert (joined, badges) == (4, 4)
