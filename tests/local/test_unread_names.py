"""A streaming table that Debezium cannot read again does not keep `up` from the other tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local.running import lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

CREATED = """
create table "Order Lines" (id bigint primary key, v text);
create table orders (id bigint primary key, v text);
insert into "Order Lines" select i, 'a' from generate_series(1, 20) i;
insert into orders select i, 'a' from generate_series(1, 20) i;
"""
LINES = "  public.Order Lines: {key: [id], name: lines, columns: {id: bigint, v: text}}\n"
FILE = f"""\
version: 1
name: tiny
source: {{database: postgres}}
policies: {{new_columns: declare}}
tables:
{LINES}  public.orders: {{key: [id], columns: {{id: bigint, v: text}}}}
"""
CHANGED = """
alter publication cdclake_tiny set (publish = 'insert, update');
delete from "Order Lines";
delete from orders;
alter table "Order Lines" add note text;
"""


def test_up_reads_the_other_tables_again(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(FILE)
    with lake_in(tmp_path) as lake:
        with lake.connect() as connection:
            connection.execute(CREATED)
        lake.run("up", str(file))
        with lake.connect() as connection:
            for statement in CHANGED.strip().splitlines():
                connection.execute(statement)
        answer = lake.run("up", str(file))
        did = {each["source"]: each["did"] for each in answer["relation_changes"]}
        assert did == {"public.Order Lines": None, "public.orders": "resync"}
        assert file.read_text() == FILE  # no column is declared whose values cannot be read
        lake.eventually(lambda: lake.sql("select count(*) from orders_current") == [[0]], 120)
        status = {table["table"]: table for table in lake.run("status")["tables"]}
        [change] = status["lines"]["relation_changes"]
        assert change["kind"] == "unpublished" and "its name has a blank" in change["remedy"]
        assert status["orders"]["relation_changes"] == []
        file.write_text(FILE.replace(LINES, LINES.replace("v: text", "v: text, note: text")))
        for command in ("plan", "up"):
            refused = lake.run(command, str(file), expect=2)["error"]
            assert refused["remedy"].startswith("write `note: {exclude: true}`; or rename")
