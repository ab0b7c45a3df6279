"""Answers of `cdclake init`: every declared table, and a file that declares none."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from cdclake.cli import main as command
from cdclake.errors import InputError
from cdclake.local.lake import declared_columns, declared_tables, introspect
from cdclake.local.lake.declared_tables import NewTables
from cdclake.plan import Plan
from cdclake.postgres.proposal import Proposal
from tests.unit.postgres.tables import actual, column, declared

FILE = """version: 1
name: shop
source: {database: shop}
tables:
  public.orders: {key: [id], columns: {id: integer, number: integer}}
  public.gone: {key: [id], columns: {id: integer}}
  public.rates:
    key: [id]
    columns: {id: integer, at: timestamptz}
    capture: {poll: {by: at}}
  public.dropped:
    key: [id]
    columns: {id: integer, at: timestamptz}
    capture: {poll: {by: at}}
  public.sums:
    key: [id]
    columns: {id: integer, at: timestamptz}
    capture: {poll: {by: at, query: "select 1 as id, now() as at"}}
"""
SOURCE = {
    ("public", "orders"): actual(),
    ("public", "rates"): actual(
        table="rates",
        columns=(column("id", nullable=False), column("at", "timestamptz"), column("secret")),
    ),
}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as ended:
        command.main(("init", *words, "--from-db", "postgresql://127.0.0.1/shop", "--json"))
    assert ended.value.code == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_update_names_every_declared_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def source_tables(_: str, plan: Plan) -> dict[tuple[str, str], Any]:
        wanted = {(table.schema, table.table) for table in plan.tables}
        return {id_: found for id_, found in SOURCE.items() if id_ in wanted}

    for module in ("cdclake.jobs.runtime.source", declared_columns.__name__):
        monkeypatch.setattr(f"{module}.source_tables", source_tables)
    monkeypatch.setattr(declared_tables, "declare_new_tables", lambda *_: NewTables())
    file = tmp_path / "shop.yaml"
    file.write_text(FILE)
    answer = run(capsys, "--update", str(file))
    assert {t["source"]: t["omitted_columns"] for t in answer["tables"]} == {
        "public.orders": [],
        "public.gone": [],
        "public.rates": ["secret"],
        "public.dropped": [],
        "public.sums": [],
    }
    assert [(each["source"], each["reason"]) for each in answer["refused"]] == [
        ("public.gone", "the source has no such table"),
        ("public.dropped", "the source has no such table"),
    ]
    assert file.read_text() == FILE


def test_update_whose_last_read_fails_adds_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def lost(*_: Any) -> Any:
        raise InputError("the source does not answer", "start it")

    wider = {("public", "orders"): actual(columns=(*actual().columns, column("added")))}
    monkeypatch.setattr(declared_columns, "source_tables", lambda *_: {**SOURCE, **wider})
    monkeypatch.setattr("cdclake.jobs.runtime.source.source_tables", lost)
    added: list[str] = []

    def new_tables(*_: Any) -> NewTables:
        added.append(file.read_text())
        return NewTables()

    monkeypatch.setattr(declared_tables, "declare_new_tables", new_tables)
    file = tmp_path / "shop.yaml"
    file.write_text(FILE)
    with pytest.raises(SystemExit) as ended:
        command.main(
            ("init", "--update", str(file), "--from-db", "postgresql://127.0.0.1/shop", "--json")
        )
    assert ended.value.code == 2
    assert "the source does not answer" in capsys.readouterr().out
    assert "added" in added[0]
    assert file.read_text() == FILE


@pytest.mark.parametrize("is_admissible", [True, False])
def test_a_file_without_a_table_is_answered_with_what_it_needs(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    is_admissible: bool,
) -> None:
    refused = Proposal(
        source=actual(),
        declared=declared() if is_admissible else None,
        reason="it has no key",
        remedy="" if is_admissible else "add a primary key",
    )
    monkeypatch.setattr(introspect, "introspect_tables", lambda *_: ("shop", [refused]))
    monkeypatch.setattr(introspect, "server_problems", lambda _: [])
    file = tmp_path / "new.yaml"
    answer = run(capsys, "-o", str(file), "--schema", "public")
    [warning] = answer["warnings"]
    assert (answer["tables"], warning["message"]) == ([], "no table can be streamed as it is")
    assert ("remove the `# `" in warning["remedy"]) is is_admissible
    command_line = ("init", "-o", str(file), "--force", "--from-db", "postgresql://127.0.0.1/shop")
    with pytest.raises(SystemExit):
        command.main(command_line)
    said = capsys.readouterr().out
    assert "no table can be streamed as it is" in said and "cdclake up" not in said


def test_force_on_a_full_disk_keeps_the_old_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(path: Path, content: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(introspect, "introspect_tables", lambda *_: ("shop", []))
    monkeypatch.setattr(introspect, "server_problems", lambda _: [])
    file = tmp_path / "shop.yaml"
    file.write_text(FILE)
    words = ("init", "-o", str(file), "--force", "--from-db", "postgresql://127.0.0.1/shop")
    with monkeypatch.context() as patched, pytest.raises(SystemExit) as ended:
        patched.setattr(Path, "write_bytes", full)
        command.main(words)
    assert ended.value.code == 2
    assert f"cannot write {file}: No space left on device" in capsys.readouterr().err
    assert (file.read_text(), [*tmp_path.iterdir()]) == (FILE, [file])
    run(capsys, *words[1:4])
    assert file.read_text() != FILE
