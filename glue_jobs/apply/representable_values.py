"""Proofs that the state's type holds the values of a changelog's column.

A value that is not proved is not wrong: it is looked at alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdclake.debezium.types import DATE_RANGE_DAYS, TIMESTAMP_RANGE_US, ColumnType, Conversion

_DAY = (
    r"((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
    r"|(0[13578]|1[02])-(29|30|31)|(0[469]|11)-(29|30))"
)
_INSTANT = rf"^[1-9][0-9]{{3}}-{_DAY}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{{1,9}})?Z$"
_SHORTEST_INSTANT = len("2000-01-01T00:00:00Z")
_TIME_AT = 10  # place of the T in an instant
_YEAR_1000_US = -30_610_224_000_000_000  # microseconds since 1970
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
            return _is_instant
        case Conversion.BINARY:
            return _matches(_BASE64)
        case _:
            return None


def _is_instant(values: pa.Array) -> pa.Array:
    """Prove instants by one cast of them all, or else each by a pattern, which takes longer."""
    if _are_instants(values.drop_null() if values.null_count else values):
        return pc.true_unless_null(values)
    return pc.match_substring_regex(values, _INSTANT)


def _are_instants(values: pa.Array) -> bool:
    """Return whether Arrow reads all values, none of them NULL, as instants in the usual form.

    Other forms that it reads differ in length or in one of two characters.
    """
    if not len(values):
        return True
    _, places, content = values.buffers()
    width = np.int64 if pa.types.is_large_string(values.type) else np.int32
    bounds = np.frombuffer(places, width)[values.offset :][: len(values) + 1].astype(np.int64)
    starts, ends = bounds[:-1], bounds[1:]
    if (ends - starts).min() < _SHORTEST_INSTANT:
        return False
    characters = np.frombuffer(content, np.uint8)
    is_usual = (characters[starts + _TIME_AT] == ord("T")) & (characters[ends - 1] == ord("Z"))
    if not is_usual.all():
        return False
    try:
        times = values.cast(pa.timestamp("us", "UTC"))
    except pa.ArrowInvalid:
        return False
    return bool(pc.min(times.cast(pa.int64())).as_py() >= _YEAR_1000_US)


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
