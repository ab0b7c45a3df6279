"""The row of a traced key, read by DuckDB."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pytest

from cdclake.jobs.reader.lake_row import _object
from cdclake.plan import Column
from cdclake.trace.row_key import key_by_text
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
