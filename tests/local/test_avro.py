"""Avro with a schema registry on the real lake, over changed tables and a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient

from cdclake.local.components.installed import REGION
from cdclake.naming import topic_name
from tests.local.running import RunningLake, lake_in
from tests.recorded.topics import read_topics

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

FILE = """\
version: 1
name: store
source: {{database: postgres, format: avro, registry: glue{mode}}}
tables:
  public.größen:
    name: sizes
    key: [id]
    columns:
      {{id: bigint, größe: text, price: numeric, ratio: real, tags: 'text[]', state: {state}{more}}}
  public.plain:
    key: [id]
    columns: {{id: bigint, note: text}}
"""
ADDED = ", added: integer"
SIZES = topic_name("store", "public", "größen")
PLAIN = topic_name("store", "public", "plain")
SQL = """
create table "größen" (id bigint primary key, "größe" text default 'M', price numeric, ratio real,
  tags text[], state text);
create table plain (id bigint primary key, note text);
insert into "größen" select i, 'L', i * 1.5, i * 0.1, array['a', null, 'é"' || i], 's'
  from generate_series(1, 500) i;
insert into plain select i, 'n' || i from generate_series(1, 100) i;
"""
CHANGES = """
update "größen" set "größe" = null where id % 3 = 0;
update "größen" set ratio = 'NaN', price = 12345678901234567890.123 where id % 7 = 0;
delete from "größen" where id % 11 = 0;
insert into plain values (1000, null) on conflict (id) do update set note = plain.note || '!';
"""


def pipeline(folder: Path, *, mode: str = "", more: str = "", state: str = "text") -> str:
    """The path of the file with these parts."""
    path = folder / "store.yaml"
    path.write_text(FILE.format(mode=mode, more=more, state=state))
    return str(path)


def glue_of(lake: RunningLake) -> BaseClient:
    """A client of the local registry."""
    at = lake.endpoints
    return boto3.client(
        "glue", endpoint_url=at.glue, region_name=REGION, aws_access_key_id=at.keys.user,
        aws_secret_access_key=at.keys.password,
    )  # fmt: skip


def headers(lake: RunningLake, topic: str) -> set[int]:
    """The first bytes of the topic's values."""
    return {
        record.value[0] for record in read_topics(lake.endpoints.kafka, [topic]) if record.value
    }


def test_rows_are_exact_over_changed_tables_and_a_restart(tmp_path: Path) -> None:
    with lake_in(tmp_path) as lake:
        with lake.connect() as connection:
            connection.execute(SQL)
            lake.run("up", pipeline(tmp_path))
            connection.execute(CHANGES)
            lake.assert_equal()
            assert headers(lake, SIZES) == headers(lake, PLAIN) == {3}
            assert headers(lake, "store.cdclake.heartbeat") == {ord("{")}
            connection.execute('alter table "größen" add column added int not null default 5')
            lake.run("up", pipeline(tmp_path, more=ADDED))
            connection.execute('update "größen" set added = id where id % 2 = 0')
            lake.assert_equal()
            [event] = lake.run("peek", "sizes", "--last", "1")["events"]
            assert event["operation"] == "update" and event["refused"] is None
            row = event["value"]["after"]
            assert (event["key"], row["added"]) == ({"id": row["id"]}, row["id"])
            key = str(row["id"])  # `_current` has the event before the state has it
            lake.eventually(lambda: lake.run("trace", "sizes", key)["situation"] == "applied", 60)
            lake.run("down")
        file = pipeline(tmp_path, more=ADDED, state="{type: text, exclude: true}")
        lake.run("up", file)
        with lake.connect() as connection:
            connection.execute('alter table "größen" drop column state')
            connection.execute(CHANGES)
        lake.assert_equal()
        lake.assert_each_identity_once("sizes", "id")


def test_a_refused_schema_stops_its_table_alone(tmp_path: Path) -> None:
    with lake_in(tmp_path) as lake, lake.connect() as connection:
        connection.execute(SQL)
        lake.run("up", pipeline(tmp_path, mode=", compatibility: DISABLED"))
        connection.execute('alter table "größen" add column added int')
        lake.run("up", pipeline(tmp_path, mode=", compatibility: DISABLED", more=ADDED))
        connection.execute('update "größen" set added = 1 where id = 1')
        connection.execute("insert into plain values (5000, 'goes on')")

        def line_of(table: str) -> dict[str, Any]:
            tables = {each["table"]: each for each in lake.run("status")["tables"]}
            return dict(tables[table])

        def state_of(table: str) -> str:
            return str(line_of(table)["state"])

        def stopped() -> bool:
            return "SCHEMA_REFUSED" in str(line_of("sizes")["last_error"])

        lake.eventually(stopped, 60)
        lake.eventually(lambda: lake.sql("select id from plain where id = 5000") == [[5000]], 60)
        schema = {"RegistryName": "store", "SchemaName": SIZES}
        glue_of(lake).update_schema(SchemaId=schema, Compatibility="NONE")
        connection.execute('update "größen" set added = 2 where id = 2')
        lake.run("resume")
        lake.eventually(lambda: state_of("sizes") == "streaming", 120)
        lake.run("replay", "--table", "sizes")
        connection.execute('update "größen" set added = 3 where id = 3')
        lake.assert_equal()
        assert state_of("sizes") == "streaming"
