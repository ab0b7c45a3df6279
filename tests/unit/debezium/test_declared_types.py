"""A source column may be declared as another type only if that changes nothing."""

from __future__ import annotations

from itertools import permutations

import pytest

from cdclake.debezium.connector import SourceAddress, connector_config
from cdclake.debezium.toast_placeholder import unavailable_forms
from cdclake.debezium.types import ARRAY_ELEMENTS, TYPES, same_in_the_lake, type_in_plan
from cdclake.plan import Column, Plan, Table
from cdclake.postgres.admission import check_table
from cdclake.postgres.event_values import log_value
from cdclake.verify.type_rules import texts_of
from tests.unit.postgres.tables import actual, column, declared

SPELLINGS = (
    *TYPES,
    *(f"{base}(3)" for base, row in TYPES.items() if row.parameters),
    *("numeric(12,2)", "numeric(50,2)", "bit(8)", "varbit(1)", "varbit(200)"),
    *(f"{base}[]" for base in sorted(ARRAY_ELEMENTS)),
    *("varchar(3)[]", "numeric(12,2)[]", "timestamp(3)[]"),
)
ADDRESS = SourceAddress(
    host="h", port=5432, database="d", user="u", password="${p}", sslmode="prefer"
)


def outcome(kind: str) -> tuple[object, ...]:
    """Everything that is derived from the declared type of a column."""
    column = Column(source="x", name="x", type=kind)
    key = Column(source="id", name="id", type="bigint")
    table = Table(
        schema="public", table="t", name="t", topic="x.public.t", key=("id",), columns=(key, column)
    )
    plan = Plan(name="x", source_database="d", lake_database="l", tables=(table,))
    config = connector_config(plan, ADDRESS, epoch=1, mask_salt="", max_queue_bytes=1)
    typed = column.column_type
    texts = texts_of(typed)
    # An instant's digits are those of the source's column; the declared ones are only a fallback.
    loaded = None if typed.base == "timestamptz" else log_value(column, table)
    return unavailable_forms(typed, "gone"), loaded, config, texts.source, texts.lake


def test_accepted_types_have_the_outcome_of_the_columns_own_type() -> None:
    outcomes = {spelling: outcome(spelling) for spelling in SPELLINGS}
    accepted = [
        (other, own)
        for other, own in permutations(SPELLINGS, 2)
        if same_in_the_lake(type_in_plan(other), type_in_plan(own))
    ]
    assert {("text", "enum"), ("text", "varchar(3)"), ("text[]", "varchar[]")} <= {*accepted}
    assert {("bigint[]", "integer[]"), ("integer[]", "bigint[]")} <= {*accepted}
    assert {("json[]", "jsonb[]"), ("jsonb[]", "json[]")} <= {*accepted}
    assert [pair for pair in accepted if outcomes[pair[0]] != outcomes[pair[1]]] == []


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_type_may_be_declared_as_itself(spelling: str) -> None:
    assert same_in_the_lake(type_in_plan(spelling), type_in_plan(spelling))


@pytest.mark.parametrize(
    ("other", "own"),
    [
        ("text[]", "uuid[]"),
        ("text[]", "integer[]"),
        ("uuid[]", "text[]"),
        ("text[]", "enum[]"),
        ("text", "char(5)"),
        ("text", "inet"),
        ("text", "xml"),
        ("bit", "bit(8)"),
    ],
)
def test_a_type_with_another_form_in_events_is_refused(other: str, own: str) -> None:
    columns = (("id", "integer"), ("x", other))
    source = actual(columns=(column("id", nullable=False), column("x", own)), identity="f")
    [refusal] = check_table(declared(*columns), source, role="cdclake_shop")
    assert f"is declared {other}, but has the type {own}" in refusal.message
    assert f"write `x: {own}`" in refusal.remedy
