"""Undeclared columns of the source: found, noted, declared, and why they stop a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdclake.control_objects import ResumeRequest
from cdclake.jobs.stream.undeclared_columns import undeclared_stops
from cdclake.local.lake import declared_columns
from cdclake.local.lake.declared_columns import columns_to_declare, declare_new_columns
from cdclake.local.lake.source_changes import compare_columns
from cdclake.plan import Column, Plan
from cdclake.plan_diff import compare
from cdclake.postgres.new_columns import find_new_columns
from cdclake.source_notes import note_new_columns, read_new_columns
from tests.spark.events import MemoryStore
from tests.unit.postgres.tables import actual, column, declared

ID, NUMBER = actual().columns
NOTE = column("note", "text")
UNVALIDATED = column("note", "text", nullable=False, unvalidated=True)
SOURCE = actual(columns=(ID, NUMBER, NOTE))


def plan_of(policy: Any = "stop", **changes: Any) -> Plan:
    table = declared(**changes)
    return Plan(
        name="shop", source_database="d", lake_database="l", tables=(table,), new_columns=policy
    )


@pytest.mark.parametrize(
    ("columns", "changes", "expected"),
    [
        ((ID, NUMBER, NOTE), {}, {"orders": {"note": "text"}}),
        ((ID, NUMBER, NOTE), {"excluded": ("note",)}, {}),
        ((ID, NUMBER, column("sum", generated=True)), {}, {}),
        ((ID, NUMBER, column("shape", None)), {}, {"orders": {"shape": None}}),
        ((ID, NUMBER, column("Number", "text")), {}, {"orders": {"Number": None}}),
        ((ID, NUMBER, column("cdc_x", "text")), {}, {"orders": {"cdc_x": None}}),
        ((ID, NUMBER, NOTE, column("Note")), {}, {"orders": {"note": "text", "Note": None}}),
    ],
)
def test_what_is_neither_declared_nor_excluded_is_new(columns, changes, expected) -> None:
    source = actual(columns=columns)
    assert find_new_columns(plan_of(**changes), {source.id: source}) == expected
    assert find_new_columns(plan_of(**changes), {}) == {}


def test_a_noted_column_stops_its_table_until_it_is_declared_or_excluded() -> None:
    control: Any = MemoryStore()
    plan = plan_of()
    note_new_columns(control, plan, {"orders": {"note": "text"}})
    [(table, reason, columns)] = undeclared_stops(control, plan, {"orders"})
    assert (table.name, columns) == ("orders", ["note"])
    assert "public.orders has undeclared columns in the source ('note')" in reason
    assert "write `note: text`, or `note: {exclude: true}`" in reason
    assert list(undeclared_stops(control, plan, set())) == []  # stopped already
    for followed in (
        plan_of(excluded=("note",)),
        replace(plan, tables=(declared(("id", "integer"), ("note", "text")),)),
        plan_of("ignore"),
        plan_of("declare"),
        plan_of(delivery="firehose"),
    ):
        assert read_new_columns(control, followed) == {}


def test_a_check_that_finds_no_more_resumes_the_table() -> None:
    control: Any = MemoryStore()
    found = {"orders": {"note": "text"}}
    for changed, seen in ((plan_of(), {}), (plan_of("ignore"), found)):
        note_new_columns(control, plan_of(), found)
        assert control.read("resume/orders.json") is None
        note_new_columns(control, changed, seen)
        assert ResumeRequest.from_json(control.read("resume/orders.json").content).columns_changed
        assert read_new_columns(control, plan_of()) == {}
        control.delete("resume/orders.json")


def test_a_plan_without_the_policy_notes_nothing() -> None:
    control: Any = MemoryStore()
    for policy in ("ignore", "declare"):
        note_new_columns(control, plan_of(policy), {"orders": {"note": "text"}})
    assert control.stored == {}


def test_a_file_that_excludes_a_column_resumes_its_table() -> None:
    changed = plan_of(excluded=("note",))
    assert compare(plan_of(), changed).reshaped == changed.tables
    assert compare(changed, changed).reshaped == ()


@pytest.mark.parametrize(
    ("policy", "message", "remedy"),
    [
        ("ignore", "does not reach the lake", "write `note: text`, or"),
        ("declare", "does not reach the lake yet", "run `cdclake up`, which writes it"),
        ("stop", "its table stops", "write `note: text`, or"),
    ],
)
def test_status_says_what_the_policy_does(policy: str, message: str, remedy: str) -> None:
    [(_, said, to_do)] = compare_columns(declared(), SOURCE, policy)
    assert message in said
    assert to_do.startswith(remedy)


FILE = """\
version: 1
name: shop
source: {database: d}
tables:
  public.orders:
    key: [id]
    columns:
      id: integer
      number: integer
"""


@pytest.mark.parametrize(
    ("columns", "added", "reason"),
    [
        ((ID, NUMBER, NOTE), "      note: text\n", ""),
        ((ID, NUMBER, column("shape", None)), "", "cannot hold column 'shape'"),
        ((ID, NUMBER, UNVALIDATED), "", "a constraint that is NOT VALID"),
        ((ID, NOTE), "", "the declared column 'number' is missing"),
        ((ID, NUMBER), "", ""),
    ],
)
def test_columns_are_declared_unless_they_may_be_renamed_ones(
    columns, added: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = actual(columns=columns)
    monkeypatch.setattr(declared_columns, "source_tables", lambda *_: {source.id: source})
    file = tmp_path / "shop.yaml"
    file.write_text(FILE)
    found = declare_new_columns("", plan_of("declare"), file)
    assert file.read_text() == FILE + added
    assert found.added == ({"public.orders": {"note": "text"}} if added else {})
    refusals = found.refused.get("public.orders", [])
    assert len(refusals) == (1 if reason else 0)
    assert all(reason in why for why, _ in refusals)


def test_a_column_whose_values_cannot_be_read_is_declared_only_at_first() -> None:
    source = replace(SOURCE, table="Order Lines")
    plan, tables = plan_of("declare", table="Order Lines"), {source.id: source}
    added, refused = columns_to_declare(plan, tables)
    [(reason, remedy)] = refused["public.Order Lines"]
    assert added == {} and "its name has a blank" in reason
    assert "otherwise write `note: {exclude: true}`, or rename it in the source" in remedy
    assert columns_to_declare(plan, tables, is_first=True) == ({source.id: {"note": "text"}}, {})
    [(_, said, to_do)] = compare_columns(plan.tables[0], source, "declare")
    assert said.endswith("so it does not reach the lake")
    assert to_do.startswith("write `note: {exclude: true}`; or rename it in the source")


@pytest.mark.parametrize(
    ("missing", "kind", "remedy"),
    [
        (
            (Column(source="email", name="first", type="text", mask="hash", renamed_from=("a",)),),
            "varchar(20)",
            "if 'email' was renamed, write its line as"
            " `mail: {type: 'varchar(20)', mask: hash, renamed_from: [a, email]}`;"
            " otherwise remove `email`, and write `mail: varchar(20)`, or",
        ),
        (
            (Column(source="email", name="email", type="text", mask="hash"),),
            "bigint",
            "if 'email' was renamed, write its line as `mail: {exclude: true}`; otherwise",
        ),
        (
            (
                Column(source="note", name="note", type="text"),
                Column(source="email", name="email", type="text", mask="truncate", truncate_to=3),
            ),
            "text",
            "if 'note' was renamed, write its line as `mail: {type: text, renamed_from: note}`;"
            " if 'email' was renamed, write its line as"
            " `mail: {type: text, mask: 'truncate(3)', renamed_from: email}`;"
            " otherwise remove `note`, `email`, and write",
        ),
    ],
)
def test_the_advised_line_of_a_renamed_column_keeps_its_mask(
    missing: tuple[Column, ...], kind: str, remedy: str
) -> None:
    ordered = declared(("id", "integer"))
    plan = plan_of(columns=(*ordered.columns, *missing))
    source = actual(columns=(ID, column("mail", kind)))
    added, refused = columns_to_declare(plan, {source.id: source})
    assert added == {}
    [(_, advised)] = refused["public.orders"]
    assert advised.startswith(remedy)


def test_status_names_columns_whose_not_null_is_not_validated() -> None:
    """One that is declared is refused by the next `up`; one that is not can only be excluded."""
    declared_one = column("number", nullable=False, unvalidated=True)
    source = actual(columns=(ID, declared_one, column("last"), UNVALIDATED))
    table = declared(("id", "integer"), ("number", "integer"), ("last", "integer"))
    [refused, new] = compare_columns(table, source, "declare")
    assert refused[0] == "number" and "NOT VALID" in refused[1] and "DROP NOT NULL" in refused[2]
    assert new == ("note", new[1], "write `note: {exclude: true}`")
