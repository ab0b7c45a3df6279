"""Athena's views are its SQL; tests/trino runs them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from cdclake import naming
from cdclake.debezium.types import TYPES as TYPES_OF_SOURCES
from cdclake.debezium.types import parse_type
from cdclake.iceberg.athena_views import athena_views
from cdclake.iceberg.evolution import may_widen
from cdclake.iceberg.widening import is_widening
from cdclake.plan import Column
from tests.unit.verify.lakes import event, make_plan, make_table

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
MOMENTS = ("seen", naming.COMMITTED_AT, naming.INGESTED_AT)
VIEWS = athena_views(TABLE, make_plan(TABLE))


@pytest.mark.parametrize("name", VIEWS)
def test_athena_parses_a_statement_that_makes_one_view(name):
    [parsed] = sqlglot.parse(VIEWS[name], dialect="athena", error_level=sqlglot.ErrorLevel.RAISE)
    assert isinstance(parsed, exp.Create)
    assert (parsed.kind, parsed.args["replace"]) == ("VIEW", True)
    assert parsed.this.sql("athena") == f'"lake_db"."{name}"'


def test_a_fault_would_be_found():
    wrong = VIEWS["t_current"].replace("SELECT", "SELECT SELECT")
    with pytest.raises(sqlglot.ParseError):
        sqlglot.parse_one(wrong, dialect="athena")


def test_no_column_is_of_a_type_that_a_stored_view_cannot_have():
    for name in MOMENTS:
        assert f'AS timestamp(6))) AS "{name}"' in VIEWS["t_history"]
    assert 'AS timestamp(6))) AS "seen"' in VIEWS["t_current"]


@pytest.mark.parametrize("facts", [{}, {"deletes": "soft"}])
def test_text_is_the_same_whatever_events_may_lack_now(facts):
    texts = [
        athena_views(table, make_plan(table))
        for table in (
            make_table(columns=(*make_table().columns, Column(source="s", name="s", type=kind)),
                       replica_identity=identity, delivery=delivery, **facts)
            for kind in ("enum", "text")
            for identity in ("default", "full", "index")
            for delivery in ("stream", "poll")
        )
    ]  # fmt: skip
    assert texts == texts[:1] * len(texts)


PARAMETERS = ("", "(1)", "(100)", "(200)", "(6,2)", "(38,2)", "(40,2)")
KINDS = [
    kind for name in TYPES_OF_SOURCES for end in PARAMETERS if (kind := parse_type(name + end))
]


def test_every_type_that_widens_to_a_toastable_one_is_known():
    assert any(old.base == "bit" for old in KINDS)
    for old, new in product(KINDS, KINDS):
        if new.toastable and is_widening(old, new):
            assert old.may_become_toastable, (old, new)
        if old.state != new.state and is_widening(old, new):
            assert may_widen(old.state), (old, new)
