"""Values that only erased rows had, and where a cut bound may be that of a kept row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest

from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.forget.erased_values import sought_values
from cdclake.plan import Table
from tests.unit.trace.test_explanation import TABLE

[KEY] = TABLE.key


class KeptRows:
    """A reader of tables with one column, whose rows were kept."""

    def __init__(self, *values: str) -> None:
        self._values = list(values)

    @contextmanager
    def open(self, tables: list[Table]) -> Iterator[duckdb.DuckDBPyConnection]:
        with duckdb.connect() as session:
            for relation in (TABLE.name, TABLE.changes):
                name = (
                    f"{DUCKDB.name(relation)} AS SELECT unnest(?::VARCHAR[]) AS {DUCKDB.name(KEY)}"
                )
                session.execute(f"CREATE TABLE {name}", [self._values])
            yield session


def found(kept: str, erased: str) -> tuple[list[bool], list[str]]:
    reader: Any = KeptRows(kept)
    sought, shared = sought_values(reader, TABLE, [(KEY, erased)])
    return [value.is_in_bounds for value in sought], shared


@pytest.mark.parametrize(
    ("kept", "is_in_bounds"),
    [
        ("2026-11-27T08:57:01Z", False),  # cut to a minimum
        ("2026-11-27T08:56:59Z", False),  # cut to a maximum, whose last character is the next one
        ("2026-11-27T08:58:00Z", False),
        ("2026-11-27T08:55:00Z", True),
        ("2026-11-27T18:57:00Z", True),
        ("2026-11-27T08:5", True),
    ],
)
def test_a_bound_tells_nothing_where_a_kept_value_begins_alike(
    kept: str, is_in_bounds: bool
) -> None:
    assert found(kept, "2026-11-27T08:57:33Z") == ([is_in_bounds], [])


def test_a_value_that_was_kept_is_not_sought() -> None:
    assert found("ada@example.org", "ada@example.org") == ([], [KEY])
