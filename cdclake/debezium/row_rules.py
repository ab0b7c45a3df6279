"""Rules that withhold events (`on: quarantine`), applied to the rows of events.

Both decoders and Firehose's function decide by this module, so that they withhold the same events.
It compares values as `<t>_current` shows them; `iceberg.limit_condition` is the same condition in
SQL. A value that was not sent breaks no rule: it was judged when it was sent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from struct import Struct
from typing import Any, NamedTuple

from cdclake.debezium import refusals
from cdclake.debezium.field_values import holds, instant_micros, time_text
from cdclake.debezium.types import ColumnType, Conversion
from cdclake.plan import Column, Table
from cdclake.quality_rule import ValueLimit

Comparable = Callable[[Any], Any]

_REAL = Struct("f")
_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)
_MICRO = timedelta(microseconds=1)


class RowRule(NamedTuple):
    """Rule about one column; `breaks` takes the changelog's value, None for NULL."""

    name: str
    column: Column
    breaks: Callable[[Any], bool]


class RowRules:
    """Rules of one table that withhold events."""

    def __init__(self, table: Table) -> None:
        columns = {column.name: column for column in table.columns}
        self.rules = tuple(
            RowRule(rule.name, column, _limit_test(rule.limit, column.column_type))
            for rule in table.checks
            if rule.limit is not None and (column := columns.get(rule.limit.column)) is not None
        )

    def reason(self, values: Mapping[str, Any], unsent: Collection[str]) -> str | None:
        """Return the reason of the first rule that the row of an event breaks; None if none."""
        for name, column, breaks in self.rules:
            value = values.get(column.name)
            if column.name not in unsent and breaks(value):
                return refusals.broken_rule(name, column, "NULL" if value is None else str(value))
        return None


def _limit_test(limit: ValueLimit, kind: ColumnType) -> Callable[[Any], bool]:
    read = _comparable_reader(kind)
    if limit.test == "not_null":
        return lambda value: value is None or read(value) is None
    literal = _literal_reader(kind)
    if limit.test == "in":
        allowed = frozenset([None, *map(literal, limit.allowed)])
        return lambda value: value is not None and read(value) not in allowed
    low, high = (None if text is None else literal(text) for text in (limit.low, limit.high))

    def is_beyond(value: Any) -> bool:
        found = None if value is None else read(value)
        if found is None:
            return False
        return (low is not None and found < low) or (high is not None and found > high)

    return is_beyond


def _comparable_reader(kind: ColumnType) -> Comparable:
    """Return the conversion to a comparable form of the state's value; None where that is NULL."""
    convert, is_held = _conversion(kind), holds(kind)
    if is_held is None:
        return convert
    return lambda value: convert(value) if is_held(value) else None


def _conversion(kind: ColumnType) -> Comparable:
    match kind.conversion:
        case Conversion.DECIMAL:
            return Decimal
        case Conversion.TIMESTAMPTZ:
            return instant_micros
        case Conversion.TIME:
            return time_text
    return {"float": _real, "double": _number}.get("" if kind.array else kind.log, _same)


def _literal_reader(kind: ColumnType) -> Callable[[str], Any]:
    """Return the reader of a limit, as the pipeline file spells it, to the comparable form."""
    readers: dict[str, Callable[[str], Any]] = {
        "boolean": lambda text: text == "true",
        "int": int,
        "bigint": int,
        "float": lambda text: _real(float(text)),
        "double": lambda text: _number(float(text)),
        "decimal": Decimal,
        "date": lambda text: (date.fromisoformat(text) - _EPOCH_DAY).days,
        "timestamp_ntz": lambda text: _micros(datetime.fromisoformat(text).replace(tzinfo=None)),
        "timestamp": lambda text: _instant(datetime.fromisoformat(text)),
    }
    return readers.get(kind.state.split("(")[0], _same)


def _same(value: Any) -> Any:
    return value


def _number(value: float) -> tuple[bool, float]:
    """Return a key that orders as Spark does: NaN equals itself and exceeds any other number."""
    return (True, 0.0) if math.isnan(value) else (False, value)


def _real(value: float) -> tuple[bool, float]:
    [nearest] = _REAL.unpack(_REAL.pack(value))
    return _number(nearest)


def _micros(time: datetime) -> int:
    return (time - _EPOCH) // _MICRO


def _instant(time: datetime) -> int:
    """Return the microseconds in UTC, which is the session's zone; it may be of the year 10000."""
    return _micros(time.replace(tzinfo=None)) - (time.utcoffset() or timedelta()) // _MICRO
