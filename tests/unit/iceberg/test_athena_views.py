"""Athena's views are its SQL, and show what the local ones do: run by DuckDB, translated."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from cdclake import naming
from cdclake.iceberg.athena_views import athena_views
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.views import history_view
from cdclake.plan import Column, Table
from tests.unit.verify.lakes import create, event, make_table

TYPES = {
    "id": "integer",
    "flag": "boolean",
    "total": "numeric(12,2)",
    "exact": "numeric",
    "day": "date",
    "at": "timestamp",
    "seen": "timestamptz",
    "clock": "time",
    "raw": "bytea",
    "Note_2": "text",
}
TABLE = make_table(
    columns=tuple(Column(source=name, name=name.lower(), type=kind) for name, kind in TYPES.items())
)
VALUES: list[dict[str, Any]] = [
    {"flag": True, "total": "-12.50", "exact": "1e400", "day": 20_000, "at": 1_700_000_000_123_456},
    {"total": "3", "seen": "2026-11-22T15:00:00.123456Z", "clock": 86_399_999_999, "raw": "AP8="},
    {"total": "0.10", "day": -719_162, "at": -62_135_596_800_000_000, "clock": 86_400_000_000},
    {"total": "1.005", "note_2": "a 'b' \"c\"", "clock": 0, "seen": "1969-12-31T23:59:59Z"},
    {"total": "NaN", "day": 2_147_483_647, "at": 9_223_372_036_854_775_807},
    {"total": "99999999999.99"},
]
LOG = [event("c", 10 * n, 10 * n + 1, id=n, **values) for n, values in enumerate(VALUES, 1)]
# What Athena has and DuckDB calls otherwise, or not at all.
MACROS = (
    "from_unixtime_nanos(n) AS make_timestamptz(CAST(n // 1000 AS BIGINT))",
    "from_iso8601_timestamp_nanos(t) AS CAST(t AS TIMESTAMPTZ)",
)
MOMENTS = ("seen", naming.COMMITTED_AT, naming.INGESTED_AT)
VIEWS = athena_views(TABLE, "lake_db")


@pytest.mark.parametrize("name", VIEWS)
def test_athena_parses_a_statement_that_makes_one_view(name):
    [parsed] = sqlglot.parse(VIEWS[name], dialect="athena", error_level=sqlglot.ErrorLevel.RAISE)
    assert isinstance(parsed, exp.Create)
    assert (parsed.kind, parsed.args["replace"]) == ("VIEW", True)
    assert parsed.this.sql("athena") == f'"lake_db"."{name}"'


def test_a_fault_would_be_found():
    wrong = VIEWS["t_current"].replace("SELECT", "SELECT SELECT")
    assert not isinstance(sqlglot.parse_one(wrong, dialect="athena"), exp.Create)


def test_no_column_is_of_a_type_that_a_stored_view_cannot_have():
    for name in MOMENTS:
        assert f'AS timestamp(6))) AS "{name}"' in VIEWS["t_history"]
    assert 'AS timestamp(6))) AS "seen"' in VIEWS["t_current"]


def selected(statement: str) -> str:
    """The view's own SELECT, in DuckDB's SQL."""
    query = sqlglot.parse_one(statement, dialect="athena").expression
    return str(query.sql("duckdb")).replace('"lake_db".', "")


def lake(session: duckdb.DuckDBPyConnection, table: Table) -> None:
    session.execute("SET TimeZone = 'UTC'")
    for macro in MACROS:
        session.execute(f"CREATE MACRO {macro}")
    live = {"id": 1, "seen": "2026-11-22 15:00:00+00", naming.DELETED: False}
    gone = {"id": 2, naming.DELETED: True}
    create(session, table, LOG)
    for row in (live, gone):
        names, values = ", ".join(row), ", ".join("?" for _ in row)
        session.execute(f"INSERT INTO t ({names}) VALUES ({values})", list(row.values()))


def rows(session: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    found = session.execute(query)
    names = [column[0] for column in found.description or []]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def test_history_has_the_local_views_values():
    with duckdb.connect() as session:
        lake(session, TABLE)
        session.execute(f"CREATE VIEW athenas AS {selected(VIEWS['t_history'])}")
        athenas = rows(session, "SELECT * REPLACE (day::DATE AS day) FROM athenas ORDER BY id")
        session.execute(
            "CREATE VIEW locals AS " + history_view(TABLE, changes="t_changes", dialect=DUCKDB)
        )
        utc = ", ".join(f"{name} AT TIME ZONE 'UTC' AS {name}" for name in MOMENTS)
        local = rows(session, f"SELECT * REPLACE ({utc}) FROM locals ORDER BY id")
    assert list(athenas[0]) == list(local[0])
    assert athenas == local
    assert athenas[0]["total"] is not None and athenas[3]["total"] is None


def test_current_hides_what_was_deleted_and_has_the_declared_columns():
    with duckdb.connect() as session:
        lake(session, TABLE)
        [row] = rows(session, selected(VIEWS["t_current"]))
    assert list(row) == [column.name for column in TABLE.columns]
    assert (row["id"], row["seen"].tzinfo, row["seen"].hour) == (1, None, 15)
