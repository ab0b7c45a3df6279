"""Columns that change in a source while it is written to, before and after the file says so."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.local.repeated_work import repeated
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
    numbers = count(1001)

    def write() -> None:
        number = next(numbers)
        for table in TABLES:
            connection.execute(f"update {table} set n = n + 1 where id = {number % 500 + 1}")
        connection.execute(f"insert into steady values ({number}, 1)")
        connection.execute(f"insert into dropped values ({number}, 1)")
        connection.execute(f"delete from dropped where id = {number - 5}")

    with psycopg.connect(**lake.dsn, autocommit=True) as connection, repeated(write, every_s=0.02):
        yield


def tables_of(lake: RunningLake) -> dict[str, dict[str, Any]]:
    return {table["table"]: table for table in lake.run("status")["tables"]}


def stopped(lake: RunningLake) -> set[str]:
    return {name for name, table in tables_of(lake).items() if table["state"] == "stopped"}


def test_tables_whose_columns_change_stop_alone_and_status_says_what_to_write(
    tmp_path: Path,
) -> None:
    with lake_in(tmp_path) as lake, lake.connect() as connection:
        connection.execute(CREATED)
        first = pipeline(tmp_path)
        lake.run("up", first)
        lake.assert_equal()
        with written_to(lake):
            _change_the_source_first(connection)
            lake.eventually(lambda: stopped(lake) == {"dropped", "renamed", "again"}, 90)
            _what_status_says(lake, Path(first))
            said = lake.run("up", pipeline(tmp_path, again=["y: text"]), expect=2)
            assert "column 'y' changed from integer to text" in said["error"]["message"]


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


def test_a_column_is_read_again_after_an_undone_edit(tmp_path: Path) -> None:
    """`up` died when it had published the plan without the column, which the stream took."""
    with lake_in(tmp_path) as lake, lake.connect() as connection:
        connection.execute(CREATED)
        first, without = pipeline(tmp_path), pipeline(tmp_path, again=[])
        lake.run("up", first)
        lake.assert_equal()
        lake.die_in_up(without)

        def is_dropped() -> bool:
            dropped = "select count(cdc_dropped_y) from again"
            return lake.run("sql", dropped, expect=None).get("rows") == [[500]]

        lake.eventually(is_dropped, 120)
        assert "again has other columns" in lake.run("up", first)["did"]
        lake.assert_equal("--wait", "60")
