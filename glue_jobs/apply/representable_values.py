"""Proofs that the state's type holds the values of a changelog's column.

A value that is not proved is not wrong: it is looked at alone.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from cdclake.debezium.types import DATE_RANGE_DAYS, TIMESTAMP_RANGE_US, ColumnType, Conversion

_DAY = (
    r"((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
    r"|(0[13578]|1[02])-(29|30|31)|(0[469]|11)-(29|30))"
)
_INSTANT = rf"^[1-9][0-9]{{3}}-{_DAY}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{{1,9}})?Z$"
_BASE64 = r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"

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
        return "x^"  # matches nothing
    fraction = f"([.][0-9]{{1,{scale}}})?" if scale else ""
    return f"^-?[0-9]{{1,{before}}}{fraction}$"


def _matches(pattern: str) -> Proof:
    return lambda values: pc.match_substring_regex(values, pattern)


def _between(values: pa.Array, lowest: int, greatest: int) -> pa.Array:
    return pc.and_(pc.greater_equal(values, lowest), pc.less_equal(values, greatest))
