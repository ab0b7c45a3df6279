"""Suggestions for names that the lake does not have."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import duckdb
import pyarrow.parquet
import pytest

from cdclake.errors import InputError
from cdclake.jobs.reader.duck import Reader
from cdclake.local.reader.query import _refused, _run
from cdclake.local.reader.suggestions import nearest
from tests.unit.verify.lakes import make_plan, make_table

TABLES = (make_table(table="orders", name="orders"), make_table(table="People", name="people"))


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("order", "orders_current"),
        ("orders", "orders_current"),
        ("Peple", "people_current"),
        ("orders_curent", "orders_current"),
        ("order_history", "orders_history"),
        ("pg_sequences", None),
    ],
)
def test_nearest_relation(word: str, found: str | None) -> None:
    assert nearest(word, TABLES) == found


@pytest.mark.parametrize("query", ["select * from order", "select * from ordrs"])
def test_refusal_suggests_our_relation_and_none_of_duckdbs(query: str) -> None:
    reader = cast(Reader, SimpleNamespace(plan=make_plan(TABLES[0])))
    with duckdb.connect() as session, pytest.raises(duckdb.Error) as error:
        session.execute("create view ordrs_pg as select 1")
        _run(session, query, None)
    refused = _refused(error.value, reader, query)
    assert refused.remedy.startswith("did you mean orders_current? `cdclake sql 'SHOW TABLES'`")
    assert "mean" not in refused.message


def test_rows_are_written_as_parquet_with_their_types(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    query = "select 1::decimal(9, 2) as d, timestamptz '2026-01-01 00:00:00+00' as t -- a comment"
    with duckdb.connect() as session:
        assert _run(session, query, None, file).rows == []
        with pytest.raises(InputError, match="only rows"):
            _run(session, "explain select 1", None, file)
    written = pyarrow.parquet.read_table(file)
    assert [str(kind) for kind in written.schema.types] == [
        *("decimal128(9, 2)", "timestamp[us, tz=UTC]"),
    ]
