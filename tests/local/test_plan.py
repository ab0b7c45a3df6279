"""`cdclake plan` with a real PostgreSQL as the source: sizes, slots and new tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cdclake.cli.main import main
from cdclake.config.resolve import load_plan
from cdclake.local.lake.lake import LakeState
from cdclake.local.process.home import Home
from tests.local.source_database import run

pytestmark = pytest.mark.local

CREATED = (
    "CREATE TABLE orders (id int PRIMARY KEY, note text)",
    "INSERT INTO orders SELECT i, repeat('x', 100) FROM generate_series(1, 1000) i",
    "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id)",
    "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (1001)",
    "CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1001) TO (3001)",
    "INSERT INTO parts SELECT generate_series(1, 3000)",
    "CREATE TABLE raw (id int PRIMARY KEY)",
    "INSERT INTO raw VALUES (1)",
    "CREATE TABLE fresh (id int PRIMARY KEY)",
    "ANALYZE orders",
    "ANALYZE parts",
)
FILE = """\
version: 1
name: shop
source: {database: shop}
policies: {new_tables: public.*}
tables:
  public.orders: {key: [id], columns: {id: int, note: text}}
  public.parts: {key: [id], columns: {id: int}}
"""
NEVER_ANALYZED = "  public.raw: {key: [id], columns: {id: int}}\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CDCLAKE_HOME", str(tmp_path / "home"))
    path = tmp_path / "shop.yaml"
    path.write_text(FILE)
    return path


def plan(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as ended:
        main(["plan", *words, "--json"])
    assert ended.value.code == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


@contextmanager
def slot_and_publication(database: str, name: str) -> Iterator[None]:
    """Have both of them as after an `up`, and drop the slot, which has no database of its own."""
    options = "publish_via_partition_root = true"
    run(
        database,
        f"CREATE PUBLICATION {name} FOR TABLE orders, parts WITH ({options})",
        f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')",
    )
    try:
        yield
    finally:
        run(database, f"SELECT pg_drop_replication_slot('{name}')")


def test_sizes_are_those_of_the_statistics(
    database: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(database, *CREATED)
    answer = plan(capsys, str(file), "--source", database)
    sizes = {table["source"]: (table["rows"], table["bytes"]) for table in answer["tables"]}
    assert {name: rows for name, (rows, _) in sizes.items()} == {
        "public.orders": 1000,
        "public.parts": 3000,
    }
    assert sizes["public.orders"][1] > 100_000
    total = sum(size for _, size in sizes.values())
    assert answer["reads"] == {"tables": 2, "rows": 4000, "bytes": total}
    assert answer["unknown"] == []
    assert [each["source"] for each in answer["new_tables"]] == ["public.fresh", "public.raw"]
    assert file.read_text() == FILE  # proposed, not written


def test_rows_of_a_table_without_statistics_are_not_known(
    database: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(database, *CREATED, "ALTER TABLE raw SET (autovacuum_enabled = off)")
    file.write_text(FILE + NEVER_ANALYZED)
    answer = plan(capsys, str(file), "--source", database)
    assert {t["source"]: t["rows"] for t in answer["tables"]}["public.raw"] is None
    assert answer["reads"]["rows"] is None


def test_columns_that_up_declares_are_read(
    database: str, file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run(database, *CREATED, "ALTER TABLE orders ADD COLUMN total numeric(12,2)")
    text = FILE.replace("new_tables: public.*", "new_columns: declare")
    file.write_text(text)
    slot = load_plan(file).source_object
    home = Home(tmp_path / "home")
    home.create()
    LakeState(plan=load_plan(file).to_json(), epoch=1, external=True).save(home)
    with slot_and_publication(database, slot):
        answer = plan(capsys, str(file), "--source", database)
    found = {table["source"]: (table["effect"], table["reason"]) for table in answer["tables"]}
    assert found == {
        "public.orders": ("load again", "`up` declares new columns: total"),
        "public.parts": ("unchanged", ""),
    }
    assert file.read_text() == text


def test_a_table_that_cannot_be_read_again_is_left_as_it_is(
    database: str, file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = 'CREATE TABLE "Order Lines" (id int PRIMARY KEY, mail text, note text)'
    run(database, *CREATED, lines)
    text = FILE.replace("new_tables: public.*", "new_columns: declare")
    declared = "  public.Order Lines: {key: [id], columns: {id: int, mail: text}}\n"
    file.write_text(text + declared)
    slot = load_plan(file).source_object
    home = Home(tmp_path / "home")
    home.create()
    LakeState(plan=load_plan(file).to_json(), epoch=1, external=True).save(home)
    with slot_and_publication(database, slot):  # without the table
        answer = plan(capsys, str(file), "--source", database)
        assert {table["effect"] for table in answer["tables"]} == {"unchanged"}
        renamed = declared.replace("mail: text", "email: {type: text, renamed_from: mail}")
        file.write_text(text + renamed)
        answer = plan(capsys, str(file), "--source", database)
        assert {t["effect"] for t in answer["tables"]} == {"unchanged", "columns"}
        run(database, 'ALTER TABLE "Order Lines" RENAME mail TO email')
        with pytest.raises(SystemExit) as ended:
            main(["plan", str(file), "--source", database, "--json"])
        refused = json.loads(capsys.readouterr().out)["error"]["message"]
    assert ended.value.code == 2 and "no event has all values of 'email'" in refused


def test_a_missing_slot_begins_a_new_epoch(
    database: str, file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run(database, *CREATED)
    home = Home(tmp_path / "home")
    home.create()
    LakeState(plan=load_plan(file).to_json(), epoch=1, external=True).save(home)
    answer = plan(capsys, str(file), "--source", database)
    reason = "a new epoch begins: the slot does not exist in the source"
    assert {(t["effect"], t["reason"]) for t in answer["tables"]} == {("load again", reason)}
    slot = load_plan(file).source_object
    with slot_and_publication(database, slot):
        assert {t["effect"] for t in plan(capsys, str(file), "--source", database)["tables"]} == {
            "unchanged"
        }
        run(database, f"DROP PUBLICATION {slot}")
        tables = plan(capsys, str(file), "--source", database)["tables"]
        reason = (
            "a new epoch begins: the slot cannot be decoded past the time without a publication"
        )
        assert {t["reason"] for t in tables} == {reason}
