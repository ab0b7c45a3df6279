"""Texts of values at the ends of their types' ranges, in the source and in the lake."""

from __future__ import annotations

import base64

import duckdb
import pytest

from cdclake.debezium.types import parse_type
from cdclake.verify.type_rules import texts_of


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
