"""Notes on columns whose values a listed reader cuts, or has no years for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdclake.iceberg.reader_notes import reader_notes
from cdclake.plan import Column
from tests.unit.verify.lakes import make_plan, make_table


def notes_on(kind: str, readers: tuple[str, ...] = ("athena", "redshift"), **facts: Any) -> str:
    columns = (
        Column(source="id", name="id", type="bigint"),
        Column(source="x", name="x", type=kind, **facts),
    )
    plan = make_plan(make_table(columns=columns), readers=readers)
    return "\n".join(note for note in reader_notes(plan) if "_current" not in note)


@pytest.mark.parametrize(
    "kind",
    ["text", "bytea", "jsonb", "varchar", "varchar(4097)", "text[]", "varchar(10)[]", "numeric"],
)
def test_values_without_a_small_bound_are_noted(kind: str) -> None:
    note = notes_on(kind)
    assert note.startswith("public.t: Redshift cuts text after 16,384 and binary after 64,000")
    assert ": x; bound" in note


@pytest.mark.parametrize(
    "kind",
    ["varchar(4096)", "char(3)", "uuid", "enum", "numeric(50,2)", "numeric(9,2)", "timestamptz"],
)
def test_short_values_are_not_noted(kind: str) -> None:
    assert notes_on(kind) == ""


def test_masked_values_are_noted_only_if_they_may_be_long() -> None:
    assert notes_on("text", mask="hash") == notes_on("bytea", mask="null") == ""
    assert notes_on("text", mask="truncate", truncate_to=4096) == ""
    assert notes_on("text", mask="truncate", truncate_to=4097) != ""


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz(3)"])
def test_years_that_clickhouse_lacks_are_noted(kind: str) -> None:
    note = notes_on(kind, readers=("athena", "clickhouse"))
    assert note.startswith("public.t: ClickHouse 25.8 has the years 1900 to 2299 only: a date")
    assert ": x; bound" in note
    assert notes_on(kind, readers=("redshift",)) == ""
    assert notes_on(kind, readers=("clickhouse",), mask="null") == ""


@pytest.mark.parametrize("kind", ["text", "bytea", "time", "date[]", "bigint"])
def test_clickhouse_reads_values_without_a_year_whole(kind: str) -> None:
    assert notes_on(kind, readers=("clickhouse",)) == ""


def test_other_readers_cut_nothing() -> None:
    assert notes_on("text", readers=("athena", "spark", "duckdb", "trino", "pyiceberg")) == ""


@pytest.mark.parametrize("title", ["Snowflake", "Redshift", "PyIceberg", "ClickHouse"])
def test_a_reader_without_views_is_noted_once(title: str) -> None:
    tables = (make_table(name="a"), make_table(name="b"))
    plan = replace(make_plan(tables[0]), tables=tables, readers=("athena", title.lower()))
    notes = [note for note in reader_notes(plan) if "_current" in note]
    assert len(notes) == 1
    assert notes[0].startswith(f"{title} has no `<t>_current` and no `<t>_history`: read `<t>`")
    assert list(reader_notes(replace(plan, tables=()))) == []
