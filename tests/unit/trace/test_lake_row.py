"""The row of a traced key, read by DuckDB."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pytest

from cdclake import naming
from cdclake.jobs.reader.lake_row import _NEWEST, _object
from cdclake.plan import Column
from cdclake.trace.row_key import RowKey, key_by_text
from tests.unit.verify.lakes import create, make_table


@pytest.mark.parametrize("name", ["big", "q"])
def test_a_row_is_read_whatever_its_columns_are_called(name: str) -> None:
    amount = Column(source="v", name="v", type="numeric(20,2)")
    key, _, text = make_table().columns
    table = make_table(columns=(key, amount, replace(text, name=name)))
    with duckdb.connect() as session:
        create(session, table, state=[{"id": 1, "v": "12345678901234567.25", name: "a"}])
        row = _object(session, table.name, key_by_text(table, ("1",)))
    assert row is not None
    assert {"id": 1, "v": "12345678901234567.25", name: "a"}.items() <= row.items()


def test_the_newest_row_of_a_number_is_read_however_it_is_spelled() -> None:
    _, *others = make_table().columns
    table = make_table(columns=(Column(source="id", name="id", type="numeric"), *others))
    spelled = ("1.50", "1.500", "15")
    rows = [{"id": text, naming.POSITION: str(at)} for at, text in enumerate(spelled)]
    with duckdb.connect() as session:
        create(session, table, state=rows)
        row = _object(session, table.name, RowKey(table, ("1.5",), {"id": "1.5"}), _NEWEST)
    assert row is not None and row["id"] == "1.500"
