"""Casts of `ALTER COLUMN ... TYPE` without a USING that change values."""

from __future__ import annotations

import math

from cdclake.debezium.types import ColumnType, parse_type

_MICROSECONDS = 6  # fractional digits of a time without a declared precision
_TIMES = frozenset({"timestamp", "timestamptz", "time", "timetz", "interval"})
# Pairs with one type in the lake, so that no check of the declared types finds the change.
_NORMALIZED = frozenset(
    {("json", "jsonb"), ("inet", "cidr"), ("macaddr", "macaddr8"), ("macaddr8", "macaddr")}
)
# Types that `varchar` is cast from by assignment, and whose values may end with blanks.
_VARIABLE_LENGTH = frozenset({"varchar", "text", "json"})


def changes_values(before: str, now: str, *, in_key: bool = False) -> bool:
    """Check whether the cast from one type to the other changes values (PostgreSQL's spellings).

    Of a key that the lake has as text, another text is another row.

    >>> changes_values("timestamp without time zone", "timestamp(0) without time zone")
    True
    >>> changes_values("numeric(40,2)", "numeric(40,4)")
    False
    >>> changes_values("numeric(40,2)", "numeric(40,4)", in_key=True)
    True
    """
    old, new = parse_type(before), parse_type(now)
    if new is None:  # an interval with fields, such as `interval day to second`, or not in the lake
        return all(each.startswith("interval") for each in (before, now))
    if old is None:  # that, a domain or an enum, whose values may be longer or not normalized
        return bool(new.parameters) or new.base in {normal for _, normal in _NORMALIZED}
    if new.base == "varchar" and old.base in _VARIABLE_LENGTH:
        return _length(new) < _length(old)  # cuts blanks at the end; other characters are an error
    if old.base != new.base:
        return (old.base, new.base) in _NORMALIZED
    if old.base == "char":  # padded to its length
        return old != new
    if in_key and _adds_zeros(old, new):
        return True
    return _fraction_digits(new) < _fraction_digits(old)


def _adds_zeros(old: ColumnType, new: ColumnType) -> bool:
    """Check whether the cast adds zeros to texts of the lake: a larger scale of a long numeric."""
    is_text = old.base == "numeric" and {old.state, new.state} == {"string"}
    return is_text and _fraction_digits(old) < _fraction_digits(new) < math.inf


def _fraction_digits(kind: ColumnType) -> float:
    if kind.base in _TIMES:
        return kind.parameters[0] if kind.parameters else _MICROSECONDS
    if kind.base == "numeric":
        return (*kind.parameters, 0)[1] if kind.parameters else math.inf
    return 0


def _length(kind: ColumnType) -> float:
    return kind.parameters[0] if kind.parameters else math.inf
