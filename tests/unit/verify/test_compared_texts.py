"""Texts of values at the ends of their types' ranges, in the source and in the lake."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Literal

import duckdb
import pytest

from cdclake.debezium.field_values import holds
from cdclake.debezium.types import TIMESTAMP_RANGE_US, parse_type
from cdclake.plan import Column, Plan, Table
from cdclake.verify.columns import compared_columns
from cdclake.verify.type_rules import texts_of

Policy = Literal["quarantine", "null"]


def sent(bits: str) -> str:
    """Debezium's form of a bit string: bytes with the lowest first, up to the highest one bit."""
    number = int(bits or "0", 2)
    return base64.b64encode(number.to_bytes((number.bit_length() + 7) // 8, "little")).decode()


def both(kind: str, source: str, lake: str | None) -> tuple[str | None, str | None]:
    """Both sides' texts of a value, here of the source's text and of the changelog's value."""
    column_type = parse_type(kind)
    assert column_type is not None
    texts = texts_of(column_type)
    statement = (
        f"SELECT {texts.source.replace('{x}', 's')}, {texts.lake.replace('{x}', 'l')} FROM t"
    )
    with duckdb.connect() as session:
        session.execute("CREATE TABLE t AS SELECT ?::VARCHAR AS s, ?::VARCHAR AS l", [source, lake])
        [found] = session.execute(statement).fetchall()
    return found


def test_all_values_of_a_bit_string_of_one_length_differ() -> None:
    values = [f"{number:04b}" for number in range(16)]
    found = {value: both("bit(4)", value, sent(value)) for value in values}
    assert all(source == lake for source, lake in found.values())
    assert len({*found.values()}) == 16


def test_a_varbit_is_compared_by_what_events_have_of_it() -> None:
    """Its leading zeros, which are lost, make no difference; every other bit does."""
    assert both("varbit", "0011", sent("11")) == ("11", "11")
    assert both("varbit(8)", "0000", sent("")) == ("", "")
    source, lake = both("varbit", "0011", sent("0111"))
    assert source != lake
    source, lake = both("varbit", "1100", sent("11"))
    assert source != lake


@pytest.mark.parametrize(
    ("kind", "bits", "lake", "same"),
    [
        ("bit", "1", "true", True),
        ("varbit(1)", "0", "false", True),
        ("varbit(1)", "1", "false", False),
        ("varbit(1)", "", None, False),
    ],
)
def test_a_single_bit_is_a_boolean(kind: str, bits: str, lake: str | None, same: bool) -> None:
    source, found = both(kind, bits, lake)
    assert (source == found) == same


_SENT = "('x' || encode({}_send(\"t\"), 'hex'))::bit(64)::bigint"  # what PostgreSQL stores
_LAST_US = TIMESTAMP_RANGE_US[1]
_LAST_INSTANT_US = 9223371244799999999  # of the year 294246
# Type, a finite value in microseconds, what the decoders have of it, and whether the lake holds it.
ENDS = [
    ("timestamp", 9223371244800000000, 9223371244800000000, True),  # 294247-01-01
    ("timestamp", _LAST_US, _LAST_US, True),  # 294247-01-09 17:46:40
    ("timestamp", _LAST_US + 1, _LAST_US + 1, False),
    ("timestamptz", _LAST_INSTANT_US, "+294246-12-31T23:59:59.999999Z", True),
    ("timestamptz", _LAST_INSTANT_US + 1, "+294247-01-01T00:00:00Z", False),
]


@pytest.mark.parametrize("policy", ["quarantine", "null"])
@pytest.mark.parametrize(("kind", "micros", "in_event", "held"), ENDS)
def test_the_last_timestamps_are_compared_as_the_lake_has_them(
    kind: str, micros: int, in_event: object, held: bool, policy: Policy
) -> None:
    """The expression of the source, but for the function that DuckDB does not have."""
    column = Column(source="t", name="t", type=kind)
    check = holds(column.column_type)
    assert check is not None
    assert check(in_event) == held
    table = Table(
        schema="public", table="x", name="x", topic="s.public.x", key=("id",),
        columns=(Column(source="id", name="id", type="bigint"), column),
    )  # fmt: skip
    plan = replace(
        Plan(name="s", source_database="d", lake_database="l", tables=(table,)),
        not_representable=policy,
    )
    compared = compared_columns(table, plan, {})[1]
    stored = _SENT.format(kind)
    assert stored in compared.source
    source = compared.source.replace(stored, "(epoch_us(t) - 946684800000000)")
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        value = "make_timestamp(?)" if kind == "timestamp" else "make_timestamptz(?)"
        session.execute(f"CREATE TABLE x AS SELECT {value} AS t", [micros])
        [[found]] = session.execute(f"SELECT {source} FROM x").fetchall()
        [[lake]] = session.execute(f"SELECT {compared.lake} FROM x").fetchall()
    assert lake == str(micros)
    if held:
        assert found == lake
    else:
        assert (found is None) == (policy == "null")
        assert found != lake
