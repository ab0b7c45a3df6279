"""Conversion of JSON rows to an Iceberg table's columns, whose names and types they must fit."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from cdclake.debezium.field_values import is_base64

# Not from AWS, which documents that such records go to the error prefix, but no codes.
_NOT_JSON = "Iceberg.InvalidRecord"
_UNKNOWN_COLUMN = "Iceberg.UnknownColumn"
_WRONG_TYPE = "Iceberg.WrongType"

_INTEGERS: Mapping[Any, int] = {
    IntegerType: 31,
    DateType: 31,
    LongType: 63,
    TimestampType: 63,
    TimestamptzType: 63,
}  # bits without sign
_TYPES: Mapping[type, tuple[type, ...]] = {
    BooleanType: (bool,),
    FloatType: (float, Decimal, int),
    DoubleType: (float, Decimal, int),
    StringType: (str,),
}
# Values in JSON: dates as days, times as microseconds, bytes as base64.
_STORED = {
    pa.date32(): pa.int32(),
    pa.timestamp("us"): pa.int64(),
    pa.timestamp("us", tz="UTC"): pa.int64(),
}


class Misfit(ValueError):
    """A row that does not fit the table, with its error code and the reason."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


def read_row(data: bytes, schema: Schema) -> Mapping[str, Any]:
    """Parse a row into values by column; missing ones are NULL. Raise Misfit if it does not fit."""
    try:
        row = json.loads(data, parse_float=Decimal)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise Misfit(_NOT_JSON, "the record is not a JSON object")
    kinds = {field.name: field.field_type for field in schema.fields}
    for name, value in row.items():
        if name not in kinds:
            raise Misfit(_UNKNOWN_COLUMN, f"the table has no column {name!r}")
        if value is not None and not _fits(value, kinds[name]):
            raise Misfit(
                _WRONG_TYPE, f"column {name!r} is {kinds[name]}, but the value is {value!r:.80}"
            )
    return row


def _fits(value: Any, kind: IcebergType) -> bool:
    if isinstance(kind, ListType):
        return isinstance(value, list) and all(_fits(each, kind.element_type) for each in value)
    bits = _INTEGERS.get(type(kind))
    if bits is not None:
        return type(value) is int and -(1 << bits) <= value < 1 << bits
    if isinstance(value, bool):
        return isinstance(kind, BooleanType)
    if isinstance(kind, DecimalType):
        return isinstance(value, int | Decimal) and _fits_decimal(Decimal(value), kind)
    if isinstance(kind, BinaryType):
        return isinstance(value, str) and is_base64(value)
    return isinstance(value, _TYPES.get(type(kind), ()))


def _fits_decimal(value: Decimal, kind: DecimalType) -> bool:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)  # JSON has neither infinity nor NaN
    return not value or (-exponent <= kind.scale and value.adjusted() < kind.precision - kind.scale)


def to_arrow(rows: Sequence[Mapping[str, Any]], schema: Schema) -> pa.Table:
    """Convert the rows into an Arrow table with the schema's columns."""
    wanted = schema.as_arrow()
    columns = [_column([row.get(field.name) for row in rows], field.type) for field in wanted]
    return pa.Table.from_arrays(columns, schema=wanted)


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        values = [None if value is None else base64.b64decode(value) for value in values]
    if pa.types.is_floating(kind):
        values = [None if value is None else float(value) for value in values]
    if pa.types.is_decimal(kind):
        values = [None if value is None else Decimal(value) for value in values]
    stored = _STORED.get(kind)
    return pa.array(values, kind) if stored is None else pa.array(values, stored).cast(kind)
