"""A rehearsed migration: what each table of the lake does, on a lake that is gone afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local.running import RunningLake

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

SCHEMA = """
CREATE TABLE widened (id int PRIMARY KEY, n int);
CREATE TABLE grown (id int PRIMARY KEY);
CREATE TABLE narrowed (id int PRIMARY KEY, note text);
CREATE TABLE same (id int PRIMARY KEY);
CREATE TABLE bare (id int PRIMARY KEY);
CREATE TABLE generated (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text);
CREATE TABLE polled (id int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
COPY widened (id, n) FROM stdin;
1\t10
2\t20
\\.
INSERT INTO grown VALUES (1);
INSERT INTO narrowed VALUES (1, 'x');
INSERT INTO same VALUES (1);
INSERT INTO generated (note) VALUES ('x');
INSERT INTO polled VALUES (1);
"""
MIGRATION = """
ALTER TABLE widened ALTER n TYPE bigint;
UPDATE widened SET n = 3000000000 WHERE id = 1;
ALTER TABLE grown ADD COLUMN added text DEFAULT 'd';
ALTER TABLE narrowed DROP COLUMN note;
ALTER TABLE generated ADD COLUMN more int NOT NULL DEFAULT 1;
"""
PIPELINE = """\
version: 1
name: rehearsed
source: {database: shop}
tables:
  public.widened: {key: [id], columns: {id: int, n: int}}
  public.grown: {key: [id], columns: {id: int}}
  public.narrowed: {key: [id], columns: {id: int, note: text}}
  public.same: {key: [id], columns: {id: int}}
  public.bare: {key: [id], columns: {id: int}}
  public.generated: {key: [id], columns: {id: int, note: text}}
  public.polled:
    capture: {poll: {by: at, every: rate(1 day)}}
    key: [id]
    columns: {id: int, at: timestamptz}
connectors:  # a rehearsal starts none, so this plugin is not missed
  out: {plugin: nowhere.zip, class: io.example.Out, tables: [public.same]}
"""


POLLED = """\
version: 1
name: rehearsed
source: {database: shop}
tables:
  public.polled:
    capture: {poll: {by: at, every: rate(1 day)}}
    key: [id]
    columns: {id: int, at: timestamptz}
"""


def test_polled_tables_are_rehearsed_without_a_connector(tmp_path: Path) -> None:
    added = "INSERT INTO polled VALUES (2);"
    dropped = f"{added} ALTER TABLE polled DROP COLUMN at;"
    files = {"shop.yaml": POLLED, "schema.sql": SCHEMA, "added.sql": added, "dropped.sql": dropped}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    lake = RunningLake(tmp_path / "home")
    words = ("rehearse", str(tmp_path / "shop.yaml"), "--schema", str(tmp_path / "schema.sql"))
    report = lake.run(*words, "--migration", str(tmp_path / "added.sql"))
    assert [(t["outcome"], t["equal"]) for t in report["tables"]] == [("goes on", True)], report
    report = lake.run(*words, "--migration", str(tmp_path / "dropped.sql"), expect=None)
    assert [table["equal"] for table in report["tables"]] != [True], report
    assert lake.processes() == []


def test_each_table_is_reported(tmp_path: Path) -> None:
    files = {"shop.yaml": PIPELINE, "schema.sql": SCHEMA, "migration.sql": MIGRATION}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    lake = RunningLake(tmp_path / "home")
    words = ("--schema", str(tmp_path / "schema.sql"))
    report = lake.run(
        "rehearse", str(tmp_path / "shop.yaml"), *words,
        *("--migration", str(tmp_path / "migration.sql")), expect=None,
    )  # fmt: skip
    assert report["statements"] == 5, report
    tables = {table["table"]: table for table in report["tables"]}
    outcomes = {name: table["outcome"] for name, table in tables.items()}
    assert (outcomes["same"], outcomes["grown"]) == ("goes on", "reported"), report
    assert "added" in tables["grown"]["changes"][0]["message"]
    assert tables["widened"]["equal"], tables["widened"]
    assert outcomes["narrowed"] == "stops", tables["narrowed"]
    assert tables["narrowed"]["error"]
    assert "no rows" in tables["bare"]["untouched"]
    assert tables["generated"]["untouched"] is None and tables["generated"]["equal"], report
    assert tables["polled"]["untouched"] is None and tables["polled"]["equal"], report
    assert not report["ok"]
    assert not list((tmp_path / "home").glob("demo-*")), "the lake is removed"
    broken = tmp_path / "broken.sql"
    broken.write_text("SELECT 1;\nALTER TABLE nothing ADD COLUMN a int;\n")
    refused = lake.run(
        "rehearse", str(tmp_path / "shop.yaml"), *words, "--migration", str(broken), expect=2
    )
    assert "broken.sql:2" in refused["error"]["message"], refused
    assert lake.processes() == []
