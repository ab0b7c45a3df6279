"""Columns that the source has otherwise than the file says, and the file's lines."""

from pathlib import Path

import pytest

from cdclake.cli.status_text import _notes
from cdclake.config.column_lines import Lines
from cdclake.errors import APPLY_FILE
from cdclake.local.lake.source_changes import compare_columns, is_ignored, widened_changes
from tests.unit.config.pipelines import VALID
from tests.unit.postgres.tables import actual, column, declared, plan

ID = actual().columns[0]
NUMBER = actual().columns[1]


def test_a_table_as_declared_has_no_changes() -> None:
    assert list(compare_columns(declared(), actual())) == []


@pytest.mark.parametrize(
    ("columns", "name", "message", "remedy"),
    [
        ((ID,), "number", "no column 'number'", "remove `number`"),
        ((ID, column("number", "text")), "number", "has the type text", "write `number: text`"),
        ((ID, NUMBER, column("x", "date")), "x", "not declared", "write `x: date`, or `x: {excl"),
        ((ID, NUMBER, column("x", None)), "x", "not declared", "write `x: {exclude: true}`"),
        ((ID, NUMBER, column("Number")), "Number", "not declared", "write `Number: {exclude: tr"),
        ((ID, NUMBER, column("cdc_x")), "cdc_x", "not declared", "write `cdc_x: {exclude: true}`"),
    ],
)
def test_each_change_says_what_to_write(columns, name, message, remedy) -> None:
    [(found, said, to_do)] = compare_columns(declared(), actual(columns=columns))
    assert found == name
    assert message in said
    assert remedy in to_do


@pytest.mark.parametrize("policy", ["ignore", "declare", "stop"])
def test_only_undeclared_columns_are_ignored_and_only_by_that_policy(policy: str) -> None:
    columns = (ID, column("number", "text"), column("x", "date"))
    found = [name for name, _, _ in compare_columns(declared(), actual(columns=columns), policy)]
    assert {name: is_ignored(declared(), name, policy) for name in found} == {
        "number": False,
        "x": policy == "ignore",
    }


@pytest.mark.parametrize(("kind", "steps"), [("bigint", 1), ("text", 2)])
def test_a_type_that_the_stored_values_cannot_take_needs_a_step_before(kind, steps) -> None:
    [(_, _, to_do)] = compare_columns(declared(), actual(columns=(ID, column("number", kind))))
    first = f"first remove `number` from the file, {APPLY_FILE}"
    assert (first in to_do) == (steps > 1)
    assert f"write `number: {kind}`" in to_do


def test_generated_and_excluded_columns_are_no_changes() -> None:
    source = actual(columns=(ID, NUMBER, column("sum", generated=True), column("secret", "text")))
    assert list(compare_columns(declared(excluded=("secret",)), source)) == []


def test_lines_are_those_of_the_file_as_it_is_now(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(VALID)
    lines = Lines(str(file))
    assert (lines.of(declared(), "note"), lines.of(declared(), "added")) == (9, 7)
    assert lines.of(declared(table="others"), "note") is None
    assert Lines(str(tmp_path / "moved.yaml")).of(declared(), "note") is None


@pytest.mark.parametrize("columns", ["[number]", "[number: bigint]", "text", "5", "null"])
def test_a_file_with_columns_of_another_form_has_no_types(tmp_path: Path, columns: str) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(f"tables:\n  public.orders:\n    columns: {columns}\n")
    lines = Lines(str(file))
    assert list(widened_changes(plan(), declared(), lines)) == []
    assert (lines.of(declared(), "number"), lines.of_table(declared())) == (3, 2)


def test_a_line_of_an_environment_is_that_of_its_overlay(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    overlay = "{columns: {note: {type: text, mask: hash}}}"
    file.write_text(f"{VALID}environments:\n  dev:\n    tables:\n      public.orders: {overlay}\n")
    lines = Lines(str(file), "dev")
    assert (lines.of(declared(), "note"), lines.of(declared(), "placed_at")) == (14, 10)
    assert Lines(str(file)).of(declared(), "note") == 9


def test_status_shows_line_gap_and_changes() -> None:
    change = {"line": 9, "message": "column 'x' is new", "remedy": "write it"}
    table = {
        "lines": [9],
        "loading": None,
        "gap": {"events": 5, "kept_until": "2026-11-28T00:00:00+00:00"},
        "source_changes": [change],
        "relation_changes": [],
    }
    assert list(_notes(table, "p.yaml")) == [
        "line to change: p.yaml:9",
        "its gap holds 5 events, which Kafka retains at least until 2026-11-28T00:00:00+00:00",
        "p.yaml:9: column 'x' is new; write it",
    ]
    silent = {
        "lines": [None],
        "loading": None,
        "gap": None,
        "source_changes": None,
        "relation_changes": None,
    }
    assert list(_notes(silent, "p.yaml")) == []
