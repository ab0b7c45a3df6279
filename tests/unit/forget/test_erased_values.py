"""Values that only erased rows had, and where a cut bound may be that of a kept row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest

from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.forget.erased_values import erased_values, sought_values
from cdclake.plan import Table
from cdclake.trace.row_key import RowKey
from tests.unit.trace.test_explanation import TABLE
from tests.unit.verify.lakes import create

[KEY] = TABLE.key
MAIL = "ada@example.org"


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


class LakeWithDropped:
    """Reader of a changelog with a column that left the file; the state began after it."""

    def __init__(self, *rows: tuple[int, str, bool]) -> None:
        self._rows = rows

    @property
    def catalog(self) -> LakeWithDropped:
        return self

    def names(self) -> set[str]:
        return {TABLE.name, TABLE.changes}

    @contextmanager
    def open(self, tables: list[Table], plain: Any = ()) -> Iterator[duckdb.DuckDBPyConnection]:
        with duckdb.connect() as session:
            create(session, TABLE)
            changes = DUCKDB.name(TABLE.changes)
            for name, kind in (("cdc_dropped_mail", "TEXT"), ("cdc_dropped_is_new", "BOOLEAN")):
                session.execute(f"ALTER TABLE {changes} ADD COLUMN {name} {kind}")
            for row in self._rows:
                session.execute(
                    f"INSERT INTO {changes} ({DUCKDB.name(KEY)}, cdc_dropped_mail,"
                    " cdc_dropped_is_new) VALUES (?, ?, ?)",
                    row,
                )
            yield session


def test_values_of_columns_that_left_the_file_are_sought() -> None:
    reader: Any = LakeWithDropped((7, MAIL, True), (8, "bob@example.org", True))
    key = RowKey(TABLE, ("7",), {KEY: 7})
    values = erased_values(reader, TABLE, [key])
    assert values == {(KEY, "7"), ("cdc_dropped_mail", MAIL)}
    left: Any = LakeWithDropped((8, "bob@example.org", True))
    sought, shared = sought_values(left, TABLE, values)
    assert {value.text for value in sought} == {"7", MAIL} and not shared


def test_a_dropped_value_that_another_row_has_is_shared() -> None:
    left: Any = LakeWithDropped((8, MAIL, True))
    sought, shared = sought_values(left, TABLE, [("cdc_dropped_mail", MAIL)])
    assert (sought, shared) == ([], ["cdc_dropped_mail"])


def test_a_dropped_value_that_another_row_has_in_the_column_of_today_is_shared() -> None:
    left: Any = LakeWithDropped((8, "8", True))
    sought, shared = sought_values(left, TABLE, [(f"cdc_dropped_{KEY}_2", "8"), (KEY, "8")])
    assert (sought, shared) == ([], [f"cdc_dropped_{KEY}_2", KEY])
