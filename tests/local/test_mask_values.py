"""Masks as expressions in a real PostgreSQL: the values that the connector's classes give."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from cdclake.debezium.types import ARRAY_ELEMENTS, TYPES, parse_type
from cdclake.masks import REDACTED, MaskKind, can_mask
from cdclake.plan import Column, Plan, Table
from cdclake.postgres.event_values import NOT_LOADED, SESSION, log_value
from cdclake.postgres.mask_values import SALT_SETTING
from cdclake.verify.columns import compared_columns

pytestmark = pytest.mark.local

Connection = psycopg.Connection[tuple[Any, ...]]
TEXTS = ["", "a", "Zoë 😀", "a,b'\\", "x" * 9000, None]
A_UUID = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
FIRST_DAYS = {
    "2024-02-29": "2024-02-01", "1969-12-31": "1969-12-01", "0099-12-31": "0099-12-01",
    "4713-12-31 BC": "4713-12-01 BC", "5874897-12-31": "5874897-12-01", "infinity": "infinity",
    "-infinity": "-infinity", "2024-03-01": "2024-03-01", "4714-12-31 BC": "4714-12-01 BC",
    "4714-11-24 BC": "-infinity",  # the first day of this month is no date of PostgreSQL
}  # fmt: skip
NO_EXTENSION = frozenset({"citext", "hstore", "ltree", "vector", "enum"})


@pytest.fixture
def source(database: str) -> Iterator[Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        for setting in SESSION[1:]:  # without the first, which would hide citext
            connection.execute(setting)
        yield connection


def expressions(kind: str, mask: MaskKind | None, **settings: Any) -> list[str]:
    """The expressions of a column `x`: that of loads and polls, and that of `verify`."""
    column = Column(source="x", name="x", type=kind, mask=mask)
    table = Table(
        schema="public", table="t", name="t", topic="x.public.t", key=("id",),
        columns=(Column(source="id", name="id", type="bigint"), column),
    )  # fmt: skip
    plan = Plan(name="x", source_database="d", lake_database="l", tables=(table,), **settings)
    return [log_value(column, table), compared_columns(table, plan, {})[1].source]


def values(source: Connection, kind: str, mask: MaskKind | None, value: object) -> list[Any]:
    """The value of each of the expressions."""
    shown = ", ".join(expressions(kind, mask))
    # OFFSET: a constant would be folded into the branches of CASE that it does not take.
    rows = f"(SELECT %s::{kind} AS x OFFSET 0) AS t"
    [row] = source.execute(f"SELECT {shown} FROM {rows}", (value,))
    return list(row)


@pytest.mark.parametrize("salt", ["pepper", "ü" * 32, "k" * 65])
def test_tokens_are_hmacs_of_the_text(source: Connection, salt: str) -> None:
    source.execute("CREATE EXTENSION citext")
    source.execute("SELECT set_config(%s, %s, false)", (SALT_SETTING, salt))

    def token(text: str) -> str:
        return hmac.new(salt.encode(), text.encode(), hashlib.sha256).hexdigest()

    for kind in ("text", "varchar(9000)", "citext"):
        for text in TEXTS:
            known = None if text is None else token(text)
            assert values(source, kind, "token", text) == [known, known]
    assert values(source, "uuid", "token", A_UUID) == [token(A_UUID)] * 2
    assert values(source, "char(4)", "token", "ab") == [token("ab  ")] * 2


def test_texts_are_redacted_and_nulls_stay(source: Connection) -> None:
    for kind in ("text", "varchar(9)", "char(3)", "uuid"):
        assert values(source, kind, "redact", None) == [None, None]
        given = A_UUID if kind == "uuid" else ""
        assert values(source, kind, "redact", given) == [REDACTED, REDACTED]


def test_dates_become_the_first_of_their_month(source: Connection) -> None:
    for day, first in FIRST_DAYS.items():
        assert values(source, "date", "month", day) == values(source, "date", None, first)
    assert values(source, "date", "month", None) == [None, None]


@pytest.mark.parametrize(("day", "held"), {"4714-11-24 BC": False, "4714-12-31 BC": True}.items())
def test_a_month_that_no_lake_holds_is_null_in_both(
    source: Connection, day: str, held: bool
) -> None:
    _, compared = expressions("date", "month", not_representable="null")
    [row] = source.execute(f"SELECT {compared} FROM (SELECT %s::date AS x OFFSET 0) AS t", (day,))
    assert (row[0] is not None) == held


def test_every_type_can_be_null_and_keeps_its_type(source: Connection) -> None:
    kinds = [*TYPES, *(f"{element}[]" for element in sorted(ARRAY_ELEMENTS))]
    for kind in kinds:
        assert can_mask("null", parse_type(kind) or pytest.fail(kind))
        base = kind.removesuffix("[]")
        if base in NO_EXTENSION or base in NOT_LOADED:
            continue
        (loaded, compared), (plain, _) = expressions(kind, "null"), expressions(kind, None)
        shown = f"{loaded}, {compared}, pg_typeof({loaded}) = pg_typeof({plain})"
        [row] = source.execute(f"SELECT {shown} FROM (SELECT NULL::{kind} AS x) AS t")
        assert row == (None, None, True), kind
