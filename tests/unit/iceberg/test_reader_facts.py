"""The facts about each reader are complete, have sources, and agree with each other."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import date

import pytest

from cdclake.iceberg.reader_facts import NOT_STATED, READER_FACTS, Fact, ReaderFacts
from scripts.reading_page import page
from tests.unit.markdown import PROJECT

SUBJECTS = {"position_deletes", "deletion_vectors", "equality_deletes", "types"}
each_reader = pytest.mark.parametrize("facts", READER_FACTS.values(), ids=READER_FACTS)


def facts_of(reader: ReaderFacts) -> dict[str, Fact]:
    values = {field.name: getattr(reader, field.name) for field in fields(reader)}
    return {name: value for name, value in values.items() if isinstance(value, Fact)}


@each_reader
def test_each_fact_has_a_source_and_a_date(facts: ReaderFacts) -> None:
    stated = facts_of(facts)
    assert stated.keys() == SUBJECTS
    for fact in stated.values():
        assert fact.text and bool(fact.source) == (fact.text != NOT_STATED)
        assert date.fromisoformat(fact.read_on) <= date(2027, 1, 1)
    assert facts.version and facts.views and facts.attached_by and facts.source
    assert date.fromisoformat(facts.read_on)


@each_reader
def test_the_named_tests_exist(facts: ReaderFacts) -> None:
    sources = [facts.source, *(fact.source for fact in facts_of(facts).values())]
    assert all("this project" not in source for source in sources), "name the test"
    named = re.findall(r"`(tests/[^`]+)`", " ".join(sources))
    assert all((PROJECT / path).is_file() for path in named)


@each_reader
def test_states_can_be_read(facts: ReaderFacts) -> None:
    assert facts.position_deletes.text == "yes"


def test_format_version_3_follows_from_deletion_vectors() -> None:
    readers = {name for name, facts in READER_FACTS.items() if 3 in facts.formats}
    assert readers == {"spark", "duckdb", "snowflake"}


@each_reader
def test_the_page_has_one_row_with_every_fact(facts: ReaderFacts) -> None:
    table = page().partition("## Engines")[2].partition("\n## ")[0]
    [row] = [line for line in table.splitlines() if line.startswith(f"| {facts.title} |")]
    [header] = [line for line in table.splitlines() if line.startswith("| engine |")]
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert row.count("|") == header.count("|")
    for fact in facts_of(facts).values():
        assert fact.text in cells and fact.source in cells[-1]
    assert f"{facts.source}, {facts.read_on}" in cells[-1]
