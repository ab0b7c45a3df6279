"""Proofs that the values of a column are what the slow decoder would give.

A value that is not proved is not wrong: the slow decoder decides about its event.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cdclake.debezium.changelog_rows import parse_json
from cdclake.debezium.field_values import reader
from cdclake.debezium.types import DATE_RANGE_DAYS, TIMESTAMP_RANGE_US, ColumnType, Conversion

_DAY = (
    r"((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
    r"|(0[13578]|1[02])-(29|30|31)|(0[469]|11)-(29|30))"
)
_INSTANT = rf"^[1-9][0-9]{{3}}-{_DAY}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{{1,9}})?Z$"
_BASE64 = r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_NUMBER = rb"-?(?:0|[1-9][0-9]*)(?:[.][0-9]+)?(?:[eE][+-]?[0-9]+)?"
_POINT = re.compile(
    rb'\{"x":%b,"y":%b,"wkb":"[A-Za-z0-9+/=]*","srid":(?:null|[1-9][0-9]*)\}' % (_NUMBER, _NUMBER)
)
# Of a JSON text without these it is known that it is kept as it is: spaces, escapes, objects, -0.
_CHANGED = re.compile(rb"[\s\\{\xf0-\xff]|-0[,\]]|-0$")

Proof = Callable[[pa.Array], pa.Array]


def representable(kind: ColumnType) -> Proof | None:
    """Return a proof that the state's type holds the values; None if it holds all of them.

    NULL is not proved.
    """
    match kind.conversion:
        case Conversion.DECIMAL:
            return _matches(_decimal_pattern(kind.state))
        case Conversion.DATE:
            return lambda values: _between(values, *DATE_RANGE_DAYS)
        case Conversion.TIMESTAMP:
            return lambda values: _between(values, *TIMESTAMP_RANGE_US)
        case Conversion.TIMESTAMPTZ:
            return _matches(_INSTANT)
        case Conversion.BINARY:
            return _matches(_BASE64)
        case _:
            return None


def _decimal_pattern(state: str) -> str:
    precision, scale = map(int, state.removeprefix("decimal(").rstrip(")").split(","))
    before = precision - scale
    if before == 0:
        return "^$"
    fraction = f"([.][0-9]{{1,{scale}}})?" if scale else ""
    return f"^-?[0-9]{{1,{before}}}{fraction}$"


def _matches(pattern: str) -> Proof:
    return lambda values: pc.match_substring_regex(values, pattern)


def _between(values: pa.Array, lowest: int, greatest: int) -> pa.Array:
    return pc.and_(pc.greater_equal(values, lowest), pc.less_equal(values, greatest))


def is_real(values: pa.Array, reals: pa.Array) -> pa.Array:
    """Prove that numbers are what their reals are written as, in the shortest form."""
    return pc.equal(reals.cast(pa.string()).cast(pa.float64()), values)


def kept_text(raw: msgspec.Raw, kind: ColumnType) -> str | None:
    """Return the text that the changelog has for a field of any form; None for NULL.

    Raises RefusedEvent if the slow decoder would refuse it, and ValueError if it is not UTF-8.
    """
    text = bytes(raw)
    if text == b"null":
        return None
    if text[:1] == b'"' and b"\\" not in text:
        return text[1:-1].decode()
    is_point = kind.base == "point" and not kind.array
    if _POINT.fullmatch(text) if is_point else not _CHANGED.search(text):
        return text.decode()
    return str(reader(kind)(parse_json(text)))
