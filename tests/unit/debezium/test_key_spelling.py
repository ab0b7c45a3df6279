"""One spelling for equal values of a key, in Python and in DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from cdclake.debezium.key_spelling import one_spelling
from cdclake.debezium.types import parse_type
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.reader.key_condition import in_changelog, in_state
from cdclake.plan import Column
from cdclake.trace.row_key import RowKey
from tests.unit.verify.lakes import create, event, make_table

# By type: texts of one value, and texts of others.
SPELLINGS = [
    ("numeric", ["1.5", "1.50", "1.500"], ["15", "1.05", "1.51", "-1.5", "150"]),
    ("numeric", ["100", "100.0", "100.00"], ["1", "10.0", "100.01", "NAN"]),
    ("numeric", ["0", "0.000"], ["NAN", "POSITIVE_INFINITY", "0.0001"]),
    ("numeric(12,3)", ["12.3", "12.30", "12.300"], ["123", "12.03"]),
    ("timestamptz(3)", ["2024-01-01T22:00:00Z", "2024-01-01T22:00:00.000Z"],
     ["2024-01-01T22:00:00.100Z", "2024-01-01T22:00:00.001Z"]),
    ("timestamptz", ["2024-01-01T22:04:05.12Z", "2024-01-01T22:04:05.120Z",
                     "2024-01-01T22:04:05.120000Z"], ["2024-01-01T22:04:05.012Z"]),
    ("char(9)", ["ab", "ab   ", "ab       "], ["a b", " ab", "ab\n", "ab \n"]),
    ("text", ["1.50"], ["1.5", "1.50 "]),
    ("numeric[]", ['["1.50"]'], ['["1.5"]']),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "equal", "others"), SPELLINGS)
def test_equal_values_alone_have_one_spelling(
    kind: str, equal: list[str], others: list[str]
) -> None:
    column_type = parse_type(kind)
    assert column_type is not None
    [one] = {one_spelling(text, column_type) for text in equal}
    assert all(one_spelling(text, column_type) != one for text in others)
    assert one_spelling(None, column_type) is None


@pytest.mark.parametrize(("kind", "equal", "others"), SPELLINGS)
def test_duckdb_finds_rows_of_every_spelling(
    kind: str, equal: list[str], others: list[str]
) -> None:
    plain = make_table()
    table = make_table(columns=(Column(source="id", name="id", type=kind), *plain.columns[1:]))
    events = [event("c", 10, at, id=text) for at, text in enumerate([*equal, *others], 11)]
    keys = [RowKey(table, (text,), {"id": text}) for text in equal]
    is_text = table.columns[0].column_type.state == "string"
    with duckdb.connect() as session:
        create(session, table, events, events if is_text else ())

        def found(relation: str, condition: str) -> set[Any]:
            query = f"SELECT id FROM {DUCKDB.name(relation)} WHERE {condition}"
            return {text for (text,) in session.execute(query).fetchall()}

        for wanted in (keys, *([key] for key in keys)):
            assert found(table.changes, in_changelog(wanted)) == {*equal}
            if is_text:
                assert found(table.name, in_state(wanted)) == {*equal}
