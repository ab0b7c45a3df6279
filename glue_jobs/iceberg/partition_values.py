"""Iceberg's partition transforms over Arrow arrays, and their values in JSON.

They are those of the specification of Iceberg's format, appendix B (bucket hashes) and C (JSON); a
test compares them with Iceberg's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdclake.jobs.iceberg.decimals import scaled, unscaled

_WITH_WIDTH = re.compile(r"(bucket|truncate)\[([0-9]+)\]")
_PERIODS = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
_MAX_HASH = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class PartitionField:
    """Field of a partition spec; the transform is spelled as Iceberg prints it."""

    field_id: int
    name: str
    source: str
    transform: str


def is_supported(transform: str) -> bool:
    """Return whether files can be written for the transform.

    >>> [is_supported(t) for t in ("identity", "day", "bucket[16]", "void")]
    [True, True, True, False]
    """
    return (
        transform == "identity" or transform in _PERIODS or bool(_WITH_WIDTH.fullmatch(transform))
    )


def transformed(values: pa.Array, transform: str) -> pa.Array:
    """Return the partition value of each value; NULL for NULL."""
    if transform == "identity":
        return values
    if transform in _PERIODS:
        return _periods(values, transform)
    found = _WITH_WIDTH.fullmatch(transform)
    if found is None:
        raise ValueError(f"unknown partition transform {transform!r}")
    width = int(found[2])
    return _buckets(values, width) if found[1] == "bucket" else _truncated(values, width)


def _periods(values: pa.Array, transform: str) -> pa.Array:
    """Return years, months, days or hours since 1970."""
    unit = "D" if pa.types.is_date(values.type) else "us"
    plain = values.cast(pa.int32() if unit == "D" else pa.int64())
    numbers = pc.fill_null(plain, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    moments = numbers.view(f"datetime64[{unit}]")
    periods = moments.astype(f"datetime64[{_PERIODS[transform]}]").astype(np.int64)
    wrapped = periods.astype(np.int32)  # hours after the year 246953, as Iceberg's
    counted = pa.array(wrapped, mask=pc.is_null(values).to_numpy(zero_copy_only=False))
    return counted.cast(pa.date32()) if transform == "day" else counted


def _buckets(values: pa.Array, count: int) -> pa.Array:
    to_bytes = _hashed_bytes(values.type)
    plain = values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values
    if pa.types.is_date(values.type):
        plain = values.cast(pa.int32())
    return pa.array(
        [
            None if each is None else (mmh3.hash(to_bytes(each)) & _MAX_HASH) % count
            for each in plain.to_pylist()
        ],
        pa.int32(),
    )


def _hashed_bytes(kind: pa.DataType) -> Callable[[Any], bytes]:
    if pa.types.is_string(kind):
        return lambda text: str(text).encode()
    if pa.types.is_binary(kind):
        return bytes
    if pa.types.is_decimal(kind):
        return lambda number: _shortest(unscaled(number, kind.scale))
    return lambda number: int(number).to_bytes(8, "little", signed=True)


def _shortest(number: int) -> bytes:
    """Return the least number of big-endian bytes in two's complement."""
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def _truncated(values: pa.Array, width: int) -> pa.Array:
    kind = values.type
    if pa.types.is_string(kind):
        return pc.utf8_slice_codeunits(values, 0, width)
    if pa.types.is_binary(kind):
        return pc.binary_slice(values, 0, width)
    numbers = values.to_pylist()
    if pa.types.is_decimal(kind):
        integers = [None if n is None else unscaled(n, kind.scale) for n in numbers]
        cut = [None if n is None else scaled(n - n % width, kind.scale) for n in integers]
        return pa.array(cut, kind)
    whole = [None if n is None else _wrapped(n - n % width, kind.bit_width) for n in numbers]
    return pa.array(whole, kind)


def _wrapped(number: int, bits: int) -> int:
    """Return the number as Iceberg's arithmetic has it, which overflows.

    >>> _wrapped(-2_147_483_650, 32)
    2147483646
    """
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def _of_field(values: pa.Array, field: PartitionField) -> pa.Array:
    """Return the partition value of each value.

    Raises ValueError for one that no file's description can have. `validate` refuses fields with
    such values (`Transform.check_values`), but older tables may have them.
    """
    try:
        found = transformed(values, field.transform)
    except pa.ArrowInvalid as error:  # the least decimals, truncated to one more digit
        raise _no_partition(pc.min(values), field) from error
    if pa.types.is_floating(found.type) and not pc.all(pc.is_finite(found), min_count=0).as_py():
        raise _no_partition(found.filter(pc.invert(pc.is_finite(found)))[0], field)
    return found


def _no_partition(value: pa.Scalar, field: PartitionField) -> ValueError:
    """Return the error, which is logged: the value is not finite, or among a type's least."""
    return ValueError(
        f"the value {value.as_py()} of {field.source!r} has no partition by {field.name!r}; remove"
        " the table from the file, then add it again under another `name:` and without this entry"
        " of `partition_by:`"
    )


def partition_of(rows: pa.Table, fields: Sequence[PartitionField]) -> dict[int, Any]:
    """Return the partition that all rows belong to, as JSON values by field id.

    Raises ValueError if they belong to several, or to one that no file can have.
    """
    partition = {}
    for field in fields:
        column = rows.column(field.source)
        ends = pc.min_max(column)
        few = pa.array([ends["min"], ends["max"]])
        is_float = pa.types.is_floating(column.type)  # a NaN is neither end
        if (is_float and rows.num_rows) or not few[0].equals(few[1]):
            few = pc.unique(column)
        found = pc.unique(_of_field(few, field))
        if len(found) != 1:
            raise ValueError(f"rows of {len(found)} partitions in one file, by {field.name}")
        partition[field.field_id] = in_json(found[0])
    return partition


def partitions(
    rows: pa.Table, fields: Sequence[PartitionField]
) -> list[tuple[dict[int, Any], npt.NDArray[np.int64]]]:
    """Return each partition of the rows with the numbers of its rows.

    Raises ValueError if no file can have one of them.
    """
    values = [_of_field(rows.column(f.source).combine_chunks(), f) for f in fields]
    codes = np.zeros(rows.num_rows, np.int64)
    for array in values:
        encoded = array.dictionary_encode(null_encoding="encode")
        own = encoded.indices.to_numpy(zero_copy_only=False)
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + own, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    return [
        (
            {
                f.field_id: in_json(array[int(group[0])])
                for f, array in zip(fields, values, strict=True)
            },
            group,
        )
        for group in groups
        if len(group)
    ]


def of_values(fields: Sequence[PartitionField], values: Mapping[str, Any]) -> dict[int, Any]:
    """Return the partition of a row with these values, by source column."""
    rows = pa.table({f.source: pa.array([values[f.source]]) for f in fields})
    return partition_of(rows, fields)


def in_json(value: pa.Scalar) -> Any:
    """Return a value as Iceberg's JSON has single values."""
    kind = value.type
    if not value.is_valid:
        return None
    if pa.types.is_date(kind):
        return _iso(np.datetime64(value.value, "D"))
    if pa.types.is_timestamp(kind):
        shown = _iso(np.datetime64(value.value, "us"))
        return f"{shown}+00:00" if kind.tz else shown
    match plain := value.as_py():
        case bytes():
            return plain.hex().upper()
        case Decimal():
            return format(plain, "f")
        case _:
            return plain


def _iso(at: np.datetime64) -> str:
    """Return the text that Java parses; Python's own dates end with the year 9999."""
    year, month, rest = str(at).rsplit("-", 2)
    number = int(year)
    sign = "-" if number < 0 else "+" if number > 9999 else ""
    return f"{sign}{abs(number):04}-{month}-{rest}"
