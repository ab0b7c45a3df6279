"""Names of tables and columns that Debezium cannot stream, and those that it can."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdclake.postgres.admission import check_polled, check_snapshot, check_table
from cdclake.postgres.proposal import propose_table
from cdclake.postgres.source_names import check_rereading
from tests.unit.postgres.tables import PRIMARY, actual, column, declared

ROLE = "cdclake_shop"


# Each was parsed by Debezium 3.7.0.Final's TableId.
@pytest.mark.parametrize(
    ("name", "flaw"),
    [
        ('say "hi"', "at its end"),
        ("it''s", "two adjacent"),
        ("a``b", "two adjacent"),
        ('x""y', "two adjacent"),
        ("'a", "at its beginning"),
        ('"a', "at its beginning"),
        ("a.`b", "after a dot"),
        ('a"', "at its end"),
    ],
)
def test_a_name_that_debezium_changes_is_refused(name: str, flaw: str) -> None:
    table, source = declared(table=name), actual(table=name)
    [refusal] = check_table(table, source, role=ROLE)
    assert flaw in refusal.message and refusal.subject == f"public.{name}"
    assert f"ALTER TABLE {_quoted('public')}.{_quoted(name)}" in refusal.remedy
    assert "capture: {poll: ...}" in refusal.remedy
    assert check_snapshot(source, ROLE, sees_all_rows=True) == [refusal]
    assert check_polled(table, source, ()) == []
    [schema] = check_table(declared(schema=name), actual(schema=name), role=ROLE)
    assert f"ALTER SCHEMA {_quoted(name)}" in schema.remedy


# The same, for names without quotation marks, as signals have them.
@pytest.mark.parametrize(
    ("name", "flaw"),
    [
        ("Order Lines", "a blank"),
        (" orders", "a blank"),
        ("orders\u2003", "a blank"),
        ("a.b.c", "several dots"),
        ("a..b", "several dots"),
        ("a.", "several dots"),
    ],
)
def test_a_name_that_signals_cannot_have_is_streamed_and_not_read_again(
    name: str, flaw: str
) -> None:
    assert check_table(declared(table=name), actual(table=name), role=ROLE) == []
    [refusal] = check_rereading("public", name)
    assert flaw in refusal.message and refusal.subject == f"public.{name}"
    assert f"ALTER TABLE {_quoted('public')}.{_quoted(name)}" in refusal.remedy


@pytest.mark.parametrize(
    "name",
    ["CamelCase", "größe", "a.b", "a-b*[c]+(d)|e", 'quo"ted', "it's", "a'", "a\u00a0b", "select"],
)
def test_an_odd_name_that_debezium_keeps_is_admitted(name: str) -> None:
    assert check_table(declared(table=name), actual(table=name), role=ROLE) == []
    assert check_rereading("public", name) == []


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


TWINS = (*actual().columns, column("Number", number=3))


@pytest.mark.parametrize("changes", [{}, {"excluded": ("Number",)}])
def test_columns_that_differ_only_by_case_are_refused(changes: Any) -> None:
    source = actual(columns=TWINS)
    [refusal] = check_table(declared(**changes), source, role=ROLE)
    assert "'number' and 'Number' differ only by case" in refusal.message
    assert 'RENAME COLUMN "Number" TO' in refusal.remedy
    assert check_snapshot(source, ROLE, sees_all_rows=True) == [refusal]
    assert check_polled(declared(**changes), source, ()) == []


def test_a_generated_column_counts_too() -> None:
    twins = (*TWINS[:2], column("NUMBER", generated=True, number=3))
    [refusal] = check_table(declared(), actual(columns=twins), role=ROLE)
    assert "differ only by case" in refusal.message


def test_init_proposes_neither() -> None:
    for source in (actual(columns=TWINS), replace(actual(), table="it''s")):
        proposal = propose_table(replace(source, indexes=(PRIMARY,)), "shop", None, 170000)
        assert proposal.declared is None and proposal.reason and "rename" in proposal.remedy
