"""docs/types.md: the newest, whole, and as the contract says."""

from __future__ import annotations

from functools import cache

import pytest

from cdclake.debezium.types import ARRAY_ELEMENTS, TYPES
from scripts.types_page import PAGE, page

# The table of types that users were promised: PostgreSQL's name, and the type in `<t>`.
PROMISED = {
    "boolean": "boolean", "smallint": "int", "integer": "int", "bigint": "bigint", "oid": "bigint",
    "real": "float", "double precision": "double", "numeric(p, s)": "decimal(p,s)",
    "money": "decimal(19,2)", "numeric": "string", "date": "date",
    "timestamp": "timestamp without zone", "timestamptz": "timestamp with zone",
    "time": "string", "timetz": "string", "interval": "string", "bytea": "binary",
    **dict.fromkeys(
        ("uuid", "text", "varchar", "char", "citext", "enum", "json", "jsonb", "xml", "inet",
         "ltree", "int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange",
         "tsvector", "bit", "hstore", "vector", "point"),
        "string",
    ),
    **dict.fromkeys((f"{element}[]" for element in ARRAY_ELEMENTS), "string"),
}  # fmt: skip


@cache
def in_the_state() -> dict[str, str]:
    """The type in `<t>` by PostgreSQL's name, as the page has it."""
    rows = [line.strip("| ").split(" | ") for line in page().splitlines()]
    return {row[0].split("`")[1]: row[4] for row in rows if len(row) > 4 and row[0][0] == "`"}


def test_the_page_is_the_newest():
    assert PAGE.read_text() == page(), "run `make docs`"


def test_every_type_is_on_it():
    names = {*TYPES, "numeric(p, s)", *(f"{element}[]" for element in ARRAY_ELEMENTS)}
    assert in_the_state().keys() == names


@pytest.mark.parametrize(("spelling", "state"), sorted(PROMISED.items()))
def test_a_promised_type_becomes_what_was_promised(spelling: str, state: str) -> None:
    assert in_the_state()[spelling] == state
