"""Metrics of a data file that Iceberg prunes by, read from the footer of the Parquet file.

They are those that Iceberg's own writer stores, which a test compares.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdclake.jobs.iceberg.decimals import unscaled

MAX_BOUND_LENGTH = 16  # characters of a string, bytes of a binary: `truncate(16)`
MAX_INFERRED_COLUMNS = 100  # later columns have no metrics but those that a property names
# Days and microseconds since 1970, also of years that Python's dates do not have.
_COUNTS = frozenset({"date", "timestamp", "timestamptz"})
_MAX_CODE_POINT, SURROGATES = 0x10FFFF, range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class MeasuredColumn:
    """Top-level column of a primitive type."""

    field_id: int
    name: str
    kind: str  # Iceberg's type
    is_full: bool  # its bounds are not truncated


@dataclass(slots=True)
class FileMetrics:
    """Metrics by field id; bounds are Iceberg's single-value bytes."""

    sizes: dict[int, int] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=dict)
    nulls: dict[int, int] = field(default_factory=dict)
    nans: dict[int, int] = field(default_factory=dict)
    lower: dict[int, bytes] = field(default_factory=dict)
    upper: dict[int, bytes] = field(default_factory=dict)


def measured_columns(
    fields: Sequence[Mapping[str, Any]], full: Collection[str]
) -> list[MeasuredColumn]:
    """Select the fields of a schema in JSON that have metrics; those in `full` always have."""
    return [
        MeasuredColumn(each["id"], each["name"], each["type"], each["name"] in full)
        for index, each in enumerate(fields)
        if isinstance(each["type"], str) and (index < MAX_INFERRED_COLUMNS or each["name"] in full)
    ]


def measure(
    rows: pa.Table, footer: pq.FileMetaData, columns: Sequence[MeasuredColumn]
) -> FileMetrics:
    """Return the metrics of a file with these rows."""
    metrics = FileMetrics()
    leaves = {footer.schema.column(at).path: at for at in range(footer.num_columns)}
    for column in columns:
        chunks = list(_chunks(footer, leaves[column.name]))
        metrics.sizes[column.field_id] = sum(chunk.total_compressed_size for chunk in chunks)
        metrics.values[column.field_id] = sum(chunk.num_values for chunk in chunks)
        metrics.nulls[column.field_id] = rows.column(column.name).null_count
        if column.kind in ("float", "double"):
            is_nan = pc.is_nan(rows.column(column.name))
            metrics.nans[column.field_id] = pc.sum(is_nan).as_py() or 0
        _note_bounds(metrics, column, [c.statistics for c in chunks])
    return metrics


def _chunks(footer: pq.FileMetaData, leaf: int) -> Iterator[pq.ColumnChunkMetaData]:
    return (footer.row_group(group).column(leaf) for group in range(footer.num_row_groups))


def _note_bounds(
    metrics: FileMetrics, column: MeasuredColumn, statistics: Sequence[pq.Statistics | None]
) -> None:
    known = [each for each in statistics if each is not None and each.has_min_max]
    if not known:
        return
    is_raw = column.kind in _COUNTS
    lowest = min(each.min_raw if is_raw else each.min for each in known)
    greatest = max(each.max_raw if is_raw else each.max for each in known)
    if column.kind in ("string", "binary") and not column.is_full:
        lowest = lowest[:MAX_BOUND_LENGTH]
        greatest = _truncated_up(greatest)
    to_bytes = _single_value(column.kind)
    metrics.lower[column.field_id] = to_bytes(lowest)
    if greatest is not None:
        metrics.upper[column.field_id] = to_bytes(greatest)


def _truncated_up(value: Any) -> Any:
    """Return the shortest bound of this length that is not below the value; None if none is."""
    if len(value) <= MAX_BOUND_LENGTH:
        return value
    return _next_text(value) if isinstance(value, str) else _next_bytes(value)


def _next_text(value: str) -> str | None:
    for at in range(MAX_BOUND_LENGTH - 1, -1, -1):
        following = ord(value[at]) + 1
        if following in SURROGATES:
            following = SURROGATES.stop
        if following <= _MAX_CODE_POINT:
            return value[:at] + chr(following)
    return None


def _next_bytes(value: bytes) -> bytes | None:
    for at in range(MAX_BOUND_LENGTH - 1, -1, -1):
        if value[at] < 0xFF:
            return value[:at] + bytes([value[at] + 1])
    return None


def _decimal(value: Decimal) -> bytes:
    integer = unscaled(value, -int(value.as_tuple().exponent))
    return integer.to_bytes((integer.bit_length() + 8) // 8, "big", signed=True)


_TO_BYTES: Mapping[str, Callable[[Any], bytes]] = {
    "boolean": lambda value: b"\x01" if value else b"\x00",
    "int": struct.Struct("<i").pack,
    "long": struct.Struct("<q").pack,
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
    "date": struct.Struct("<i").pack,
    "timestamp": struct.Struct("<q").pack,
    "timestamptz": struct.Struct("<q").pack,
    "string": str.encode,
    "binary": bytes,
}


def _single_value(kind: str) -> Callable[[Any], bytes]:
    return _decimal if kind.startswith("decimal(") else _TO_BYTES[kind]
