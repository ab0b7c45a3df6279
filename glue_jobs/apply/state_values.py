"""Values of the state from those of the changelog, as Arrow arrays.

The meaning is that of `cdclake.iceberg.conversions.to_state`, which is SQL: NULL for a value that
the state's type cannot hold. Whole columns are converted by Arrow; values that it may read in
another way are converted one by one.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import date
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdclake.debezium.field_values import holds
from cdclake.debezium.types import ColumnType, Conversion
from cdclake.jobs.apply.representable_values import representable

_EXACT = Context(prec=80)
_INSTANT = re.compile(
    r"([+-]?)([0-9]{4,6})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2})"
    r"(?::([0-9]{2})(?:[.]([0-9]{1,9}))?)?Z"
)
_DAYS_OF_400_YEARS, _MICROS_OF_DAY = 146_097, 86_400_000_000
_DAY_ZERO = date(1970, 1, 1).toordinal()
_LONGS = range(-(2**63), 2**63)


def to_state(values: pa.Array, kind: ColumnType) -> pa.Array:
    """Convert a column of the changelog; NULL stays NULL."""
    match kind.conversion:
        case Conversion.NONE:
            return values
        case Conversion.DECIMAL:
            precision, scale = map(int, kind.state[len("decimal(") : -1].split(","))
            return _checked(values, kind, pa.decimal128(precision, scale), _decimal(scale))
        case Conversion.DATE:
            return _within(values, kind).cast(pa.date32())
        case Conversion.TIMESTAMP:
            return _within(values, kind).cast(pa.timestamp("us"))
        case Conversion.TIMESTAMPTZ:
            return _checked(values, kind, pa.timestamp("us", "UTC"), _instant)
        case Conversion.TIME:
            return _times(values)
        case Conversion.BINARY:
            return pa.array([_bytes(text) for text in values.to_pylist()], pa.binary())


def _checked(
    values: pa.Array, kind: ColumnType, target: pa.DataType, one: Callable[[str], Any]
) -> pa.Array:
    """Cast the values of the usual form together, and the others one by one."""
    prove, is_held = representable(kind), holds(kind)
    assert prove is not None and is_held is not None
    proved = prove(values)
    usual = pc.if_else(proved, values, pa.scalar(None, pa.string()))
    converted = _cast(usual, target)
    others = pc.and_kleene(pc.invert(proved), pc.is_valid(values))
    if not pc.any(others).as_py():
        return converted
    plain = pa.int64() if pa.types.is_timestamp(target) else target
    whole = converted.cast(plain).to_pylist()
    for index in np.flatnonzero(others.to_numpy(zero_copy_only=False)):
        text = values[int(index)].as_py()
        whole[int(index)] = one(text) if is_held(text) else None
    return pa.array(whole, plain).cast(target)


def _cast(usual: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(target):
        return usual.cast(target)
    try:
        return usual.cast(target)
    except pa.ArrowInvalid:  # for a digit of a second after the sixth
        micros = pc.replace_substring_regex(usual, r"([.][0-9]{6})[0-9]*Z$", r"\1Z")
        return micros.cast(target)


def _decimal(scale: int) -> Callable[[str], Decimal]:
    exponent = Decimal(1).scaleb(-scale)
    return lambda text: Decimal(text).quantize(exponent, context=_EXACT)


def _instant(text: str) -> int | None:
    """Return microseconds since 1970; digits after the sixth of a second are cut, as Spark does."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        return None
    year = int(found[1] + found[2])
    # Python's calendar is shorter, and repeats every 400 years.
    cycles, within = divmod(year - 2000, 400)
    day = date(2000 + within, int(found[3]), int(found[4]))
    days = day.toordinal() - _DAY_ZERO
    hour, minute, second = (int(part or 0) for part in found.group(5, 6, 7))
    micro = int((found[8] or "").ljust(6, "0")[:6])
    seconds = (hour * 60 + minute) * 60 + second
    whole_days = days + cycles * _DAYS_OF_400_YEARS
    micros = whole_days * _MICROS_OF_DAY + seconds * 1_000_000 + micro
    return micros if micros in _LONGS else None


def _within(values: pa.Array, kind: ColumnType) -> pa.Array:
    prove = representable(kind)
    assert prove is not None
    return pc.if_else(prove(values), values, pa.scalar(None, values.type))


def _times(micros: pa.Array) -> pa.Array:
    """Return `HH:MM:SS`, with six more digits if there is a fraction; 24:00:00 is a valid time."""
    texts = [None if each is None else _time(each) for each in micros.to_pylist()]
    return pa.array(texts, pa.string())


def _time(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    shown = f".{fraction:06}" if fraction else ""
    return f"{hour:02}:{minute:02}:{second:02}{shown}"


def _bytes(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
