"""Values of the state from those of the changelog, as Arrow arrays.

The meaning is that of `cdclake.iceberg.conversions.to_state`, which is SQL: NULL for a value that
the state's type cannot hold. Whole columns are converted by Arrow; values that it may read in
another way are converted one by one.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdclake.debezium.field_values import holds, instant_micros, is_base64, time_text
from cdclake.debezium.types import ColumnType, Conversion
from cdclake.jobs.apply.representable_values import representable

_EXACT = Context(prec=80)


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
            return _checked(values, kind, pa.timestamp("us", "UTC"), instant_micros)
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


def _within(values: pa.Array, kind: ColumnType) -> pa.Array:
    prove = representable(kind)
    assert prove is not None
    return pc.if_else(prove(values), values, pa.scalar(None, values.type))


def _times(micros: pa.Array) -> pa.Array:
    """Return `HH:MM:SS`, with six more digits if there is a fraction; 24:00:00 is a valid time."""
    texts = [None if each is None else time_text(each) for each in micros.to_pylist()]
    return pa.array(texts, pa.string())


def _bytes(text: str | None) -> bytes | None:
    return base64.b64decode(text) if text is not None and is_base64(text) else None
