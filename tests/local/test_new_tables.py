"""`init --update` with `policies: new_tables`, on a real PostgreSQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cdclake.cli.main import main
from cdclake.config.resolve import load_plan
from tests.local.source_database import run

pytestmark = pytest.mark.local

CREATED = (
    "CREATE TABLE orders (id int PRIMARY KEY, note text)",
    "CREATE SCHEMA sales",
    "CREATE TABLE sales.orders (id int PRIMARY KEY, at timestamptz)",
    'CREATE TABLE sales."Big Lines" (id int PRIMARY KEY, "a: b" text)',
    "CREATE TABLE sales.keyless (n int)",
    "INSERT INTO sales.keyless VALUES (1), (1)",
    "CREATE TABLE private (id int PRIMARY KEY, secret text)",
)
FILE = """\
# the shop's tables
version: 1
name: shop
source: {database: shop}
policies: {new_tables: POLICY}
tables:
  public.orders: # those of the shop
    key: [id]
    columns:
      id: int # never reused
# the end
"""


def update(
    database: str, file: Path, capsys: pytest.CaptureFixture[str], policy: str, *sql: str
) -> dict[str, Any]:
    run(database, *sql)
    file.write_text(FILE.replace("POLICY", policy))
    with pytest.raises(SystemExit) as ended:
        main(["init", "--update", str(file), "--from-db", database, "--json"])
    assert ended.value.code == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_tables_of_the_pattern_and_columns_are_added(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "shop.yaml"
    answer = update(database, file, capsys, "sales.*", *CREATED)
    assert answer["added_tables"] == ["sales.Big Lines", "sales.orders"]
    assert answer["undeclared_tables"] == ["public.private"]
    assert [refused["source"] for refused in answer["refused"]] == ["sales.keyless"]
    assert {t["table"]: t["added_columns"] for t in answer["tables"]}["orders"] == ["note"]
    plan = load_plan(file)
    added = {table.source: [c.source for c in table.columns] for table in plan.tables}
    assert added == {
        "public.orders": ["id", "note"],
        "sales.Big Lines": ["id", "a: b"],
        "sales.orders": ["id", "at"],
    }
    assert len({table.name for table in plan.tables}) == 3
    kept = FILE.replace("POLICY", "sales.*").splitlines()
    written = iter(file.read_text().splitlines())
    assert all(line in written for line in kept)  # in this order


def test_without_a_pattern_tables_are_only_listed(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = update(database, tmp_path / "shop.yaml", capsys, "none", *CREATED)
    others = ["public.private", "sales.Big Lines", "sales.keyless", "sales.orders"]
    assert (answer["added_tables"], answer["undeclared_tables"]) == ([], others)
    assert [table.source for table in load_plan(tmp_path / "shop.yaml").tables] == ["public.orders"]


def test_a_file_that_cannot_hold_the_tables_gets_no_columns(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(database, *CREATED)
    file = tmp_path / "shop.yaml"
    tables = "tables: {public.orders: {key: [id], columns: {id: int}}}"
    file.write_text(FILE.partition("tables:\n")[0].replace("POLICY", "sales.*") + tables)
    before = file.read_bytes()
    with pytest.raises(SystemExit) as ended:
        main(["init", "--update", str(file), "--from-db", database, "--json"])
    assert (ended.value.code, file.read_bytes()) == (2, before)
    assert "cannot add sales" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_a_renamed_table_is_not_captured_as_a_new_one(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renamed = (*CREATED, "ALTER TABLE public.orders RENAME TO purchases")
    answer = update(database, tmp_path / "shop.yaml", capsys, "public.*", *renamed)
    assert answer["added_tables"] == []
    reason = "it is new, and the declared table public.orders is missing in the source"
    assert {(r["source"], r["reason"]) for r in answer["refused"]} == {
        ("public.private", reason),
        ("public.purchases", reason),
        ("public.orders", "the source has no such table"),
    }
