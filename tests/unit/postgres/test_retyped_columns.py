"""Remedies for columns that have another type in the source than in the file."""

from __future__ import annotations

from cdclake.errors import START_AGAIN
from cdclake.postgres.admission import check_columns
from tests.unit.postgres.tables import actual, column, declared

COLUMNS = actual().columns


def test_another_type_follows_when_the_earlier_events_are_read() -> None:
    source = actual(columns=(COLUMNS[0], column("number", "text"), *COLUMNS[2:]))
    [refusal] = check_columns(declared(), source)
    assert "first remove `number` from the file" in refusal.remedy
    assert "wait until the table streams without lag" in refusal.remedy


def test_a_key_of_another_type_starts_again_under_another_name() -> None:
    source = actual(columns=(column("id", "uuid"), *COLUMNS[1:]))
    [refusal] = check_columns(declared(), source)
    assert refusal.remedy == (
        f"write `id: uuid`; if it streams already, a key keeps its types: {START_AGAIN}"
    )
