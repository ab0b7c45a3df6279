"""PostgreSQL types, with their types in Debezium's events, in the changelog and in the state.

`TYPES` has one row per type; other types are refused, among them `name`, for which Debezium 3.7
streams NULL. The connector runs with `decimal.handling.mode=string`,
`time.precision.mode=microseconds`, `interval.handling.mode=string`, `hstore.handling.mode=json`
and `binary.handling.mode=bytes`, so that every value reaches the changelog exactly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

# PostgreSQL's years, 4714 BC to 5874897 and 294246. Debezium's infinities are outside of them;
# there are several, since snapshot and stream write different numbers (tests/recorded/types.sql).
DATE_RANGE_DAYS = (-2440588, 2145042905)
TIMESTAMP_RANGE_US = (-210866803200000000, 9223372000000000000)
INSTANT_YEARS = (-290307, 294246)  # whole years of 64 bits of microseconds


class Conversion(Enum):
    """Conversion of a column from `<t>_changes` to `<t>`."""

    NONE = "none"
    DECIMAL = "decimal"  # exact text -> decimal(p, s)
    DATE = "date"  # days since 1970-01-01 -> date
    TIMESTAMP = "timestamp"  # microseconds since 1970-01-01 -> timestamp without zone
    TIMESTAMPTZ = "timestamptz"  # ISO 8601 text with Z -> timestamp with zone
    TIME = "time"  # microseconds since midnight -> HH:MM:SS[.ffffff]
    BINARY = "binary"  # base64 -> bytes


@dataclass(frozen=True, slots=True)
class TypeRow:
    """Row of `TYPES`: a PostgreSQL type; `log` and `state` are Spark SQL type names."""

    log: str
    state: str
    conversion: Conversion = Conversion.NONE
    toastable: bool = True  # an UPDATE's event may omit an unchanged value
    parameters: int = 0  # maximum number of parameters in a declaration


_TEXT = TypeRow("string", "string")
_TEXT_N = TypeRow("string", "string", parameters=1)

TYPES: Mapping[str, TypeRow] = {
    "boolean": TypeRow("boolean", "boolean", toastable=False),
    "smallint": TypeRow("int", "int", toastable=False),
    "integer": TypeRow("int", "int", toastable=False),
    "bigint": TypeRow("bigint", "bigint", toastable=False),
    "oid": TypeRow("bigint", "bigint", toastable=False),
    "real": TypeRow("float", "float", toastable=False),
    "double precision": TypeRow("double", "double", toastable=False),
    "numeric": TypeRow("string", "string", parameters=2),  # with (p<=38, s): decimal(p, s)
    "money": TypeRow("string", "decimal(19,2)", Conversion.DECIMAL, toastable=False),
    "date": TypeRow("int", "date", Conversion.DATE, toastable=False),
    "timestamp": TypeRow("bigint", "timestamp_ntz", Conversion.TIMESTAMP, False, 1),
    "timestamptz": TypeRow("string", "timestamp", Conversion.TIMESTAMPTZ, False, 1),
    "time": TypeRow("bigint", "string", Conversion.TIME, toastable=False, parameters=1),
    "timetz": TypeRow("string", "string", toastable=False, parameters=1),
    "interval": TypeRow("string", "string", toastable=False, parameters=1),
    "bytea": TypeRow("string", "binary", Conversion.BINARY),
    "uuid": TypeRow("string", "string", toastable=False),
    "enum": TypeRow("string", "string", toastable=False),
    "text": _TEXT,
    "varchar": _TEXT_N,
    "char": _TEXT_N,
    "citext": _TEXT,
    "json": _TEXT,
    "jsonb": _TEXT,
    "xml": _TEXT,
    "hstore": _TEXT,
    "ltree": _TEXT,
    "inet": TypeRow("string", "string", toastable=False),
    "cidr": TypeRow("string", "string", toastable=False),
    "macaddr": TypeRow("string", "string", toastable=False),
    "macaddr8": TypeRow("string", "string", toastable=False),
    "bit": _TEXT_N,
    "varbit": _TEXT_N,
    "tsvector": _TEXT,
    "int4range": _TEXT,
    "int8range": _TEXT,
    "numrange": _TEXT,
    "tsrange": _TEXT,
    "tstzrange": _TEXT,
    "daterange": _TEXT,
    "point": TypeRow("string", "string", toastable=False),
    "vector": _TEXT_N,
}

ALIASES: Mapping[str, str] = {
    "bool": "boolean",
    "int2": "smallint",
    "int": "integer",
    "int4": "integer",
    "serial": "integer",
    "int8": "bigint",
    "bigserial": "bigint",
    "float4": "real",
    "float8": "double precision",
    "float": "double precision",
    "decimal": "numeric",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "time without time zone": "time",
    "time with time zone": "timetz",
    "character varying": "varchar",
    "character": "char",
    "bpchar": "char",
    "bit varying": "varbit",
}

# Arrays of these arrive as JSON with the array's content. Arrays of money and of intervals
# never arrive at all (Debezium 3.7).
ARRAY_ELEMENTS = frozenset(
    {
        "boolean", "smallint", "integer", "bigint", "oid", "real", "double precision", "numeric",
        "date", "timestamp", "timestamptz", "time", "timetz", "bytea", "uuid",
        "enum", "text", "varchar", "char", "citext", "json", "jsonb", "inet", "cidr", "macaddr",
        "macaddr8", "int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange",
    }
)  # fmt: skip

MAX_DECIMAL_PRECISION = 38
_BIT_STRINGS = frozenset({"bit", "varbit"})

# PostgreSQL compares a timetz by its time and its zone, which events do not have.
_COLLISIONS: Mapping[str, str] = {
    "varbit": "without leading zeros, as in events, values may collide",
    "timetz": "in UTC, as in events, values of different zones may collide",
}
_ANY_FORM = _BIT_STRINGS | {"point", "vector"}
_MAX_BITS_INLINE = 128  # 24 bytes with their header: never stored out of line

_SPELLING = re.compile(
    r"\s*([a-z_][a-z0-9_ ]*?)\s*(?:\(([\d\s,]*)\)\s*([a-z ]*?))?\s*((?:\[\])?)\s*"
)


@dataclass(frozen=True, slots=True)
class ColumnType:
    """Declared type of a column: a row of `TYPES`, its parameters, and whether it is an array."""

    base: str
    parameters: tuple[int, ...] = ()
    array: bool = False

    def __str__(self) -> str:
        shown = f"({','.join(map(str, self.parameters))})" if self.parameters else ""
        return f"{self.base}{shown}{'[]' if self.array else ''}"

    @property
    def _fits_decimal(self) -> bool:
        return (
            self.base == "numeric"
            and bool(self.parameters)
            and self.parameters[0] <= MAX_DECIMAL_PRECISION
        )

    @property
    def log(self) -> str:
        """Return the Spark type of the column in `<t>_changes`."""
        return "string" if self.array else TYPES[self.base].log

    @property
    def state(self) -> str:
        """Return the Spark type of the column in `<t>`, `<t>_current` and `<t>_history`."""
        if self.array:
            return "string"
        if self._fits_decimal:
            return f"decimal({self.parameters[0]},{(*self.parameters, 0)[1]})"
        return TYPES[self.base].state

    @property
    def conversion(self) -> Conversion:
        """Return the conversion from the changelog's value to the state's."""
        if self.array:
            return Conversion.NONE
        return Conversion.DECIMAL if self._fits_decimal else TYPES[self.base].conversion

    @property
    def toastable(self) -> bool:
        """Check whether PostgreSQL may omit the unchanged value from an update's record."""
        # A numeric of 38 digits is smaller than the pointer that would replace it, as are bits.
        small = self._fits_decimal or self._fits_pointer
        return self.array or (TYPES[self.base].toastable and not small)

    @property
    def may_become_toastable(self) -> bool:
        """Check whether the type is toastable, or the lake may change it to or from one that is."""
        return self.toastable or self.base == "enum" or self.is_bit_string

    @property
    def has_any_form(self) -> bool:
        """Check whether the field may be other JSON than a string: the changelog has its text."""
        return self.array or self.base in _ANY_FORM

    @property
    def bits(self) -> int | None:
        """Return the maximum length of a bit string, whose events are booleans if it is 1."""
        if self.base not in _BIT_STRINGS or self.array:
            return None
        unlimited = 1 if self.base == "bit" else None
        return self.parameters[0] if self.parameters else unlimited

    @property
    def collision(self) -> str | None:
        """Return why distinct values may be equal in events, as those of a key must not be."""
        return _COLLISIONS.get(self.base)

    @property
    def is_bit_string(self) -> bool:
        """Check whether the type is a bit string of any length."""
        return self.base in _BIT_STRINGS

    @property
    def _fits_pointer(self) -> bool:
        return self.bits is not None and self.bits <= _MAX_BITS_INLINE


@lru_cache(maxsize=4096)
def parse_type(spelling: str) -> ColumnType | None:
    """Parse a type in PostgreSQL's spelling or its short form; None if it is not supported.

    >>> str(parse_type("decimal(12, 2)"))
    'numeric(12,2)'
    >>> str(parse_type("timestamp(3) with time zone"))
    'timestamptz(3)'
    >>> parse_type("numeric[]").state
    'string'
    >>> parse_type("geometry") is None
    True
    """
    match = _SPELLING.fullmatch(spelling.lower())
    if match is None:
        return None
    word, inside, rest, brackets = match.groups()
    name = " ".join(f"{word} {rest or ''}".split())
    base = ALIASES.get(name, name)
    row = TYPES.get(base)
    parameters = _parse_parameters(inside)
    if row is None or parameters is None or len(parameters) > row.parameters:
        return None
    if brackets and base not in ARRAY_ELEMENTS:
        return None
    if base == "numeric" and (*parameters, 0, 0)[1] > (*parameters, 0)[0]:
        return None  # PostgreSQL 15 allows scale > precision; no lake decimal does
    return ColumnType(base, parameters, bool(brackets))


def _parse_parameters(inside: str | None) -> tuple[int, ...] | None:
    if inside is None:
        return ()
    parts = [part.strip() for part in inside.split(",")]
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else None


def same_in_the_lake(declared: ColumnType, actual: ColumnType) -> bool:
    """Check whether a source column of type `actual` may be declared as `declared`.

    The spelling may differ (`text` for a `varchar(50)` or an enum), but not the outcome: the form
    in the event, the type in the changelog and the type in the state must be equal.
    """
    return (
        (declared.array, declared.log, declared.state, declared.conversion)
        == (actual.array, actual.log, actual.state, actual.conversion)
        and (declared.toastable or not actual.toastable)
        and event_form(declared) == event_form(actual)
    )


def event_form(column_type: ColumnType) -> str:
    """Return a name of the form in events.

    Types with the same form and the same types in the lake also share placeholders, converters,
    and their SQL in bulk loads and `verify`.

    >>> event_form(ColumnType("enum")) == event_form(ColumnType("varchar", (5,)))
    True
    >>> event_form(ColumnType("enum", array=True)) == event_form(ColumnType("text", array=True))
    False
    """
    if column_type.array:
        return f"{_ELEMENT_FORM.get(column_type.base, column_type.base)}[]"
    if column_type.bits == 1:
        return "bit"
    return _EVENT_FORM.get(column_type.base, "text")


_ELEMENT_FORM: Mapping[str, str] = {"varchar": "text", "integer": "bigint", "jsonb": "json"}

# Strings in the changelog that are not PostgreSQL's plain text: declaring one as another would make
# `verify` compare two representations of one value.
_EVENT_FORM: Mapping[str, str] = {
    "numeric": "number",
    "timetz": "time of day",
    "interval": "interval",
    "char": "padded text",  # a cast to text strips the blanks
    "inet": "address",  # a cast to text adds a netmask
    "cidr": "address",
    "xml": "xml",  # a snapshot's raw value, which masks convert, is not a string
    "hstore": "json map",
    "bit": "bits",
    "varbit": "bits of unknown length",
    "point": "point",
    "vector": "vector",
}


def type_in_plan(spelling: str) -> ColumnType:
    """Parse a type that the pipeline file's checks have accepted; raise ValueError otherwise."""
    parsed = parse_type(spelling)
    if parsed is None:
        raise ValueError(f"unknown type {spelling!r} in the plan")
    return parsed
