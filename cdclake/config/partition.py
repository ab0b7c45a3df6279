"""Iceberg's partition transforms over declared columns, as in `partition_by`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Context, Decimal

from cdclake.config.literals import unquoted
from cdclake.config.problems import Refused
from cdclake.debezium.types import ColumnType

_TIMES = frozenset({"timestamp", "timestamp_ntz"})
_DATES = _TIMES | {"date"}
_EXACT = frozenset({"int", "bigint", "string", "binary"})
# transform -> the lake types that it accepts; `decimal` means every decimal
_TAKES: dict[str, frozenset[str]] = {
    "year": _DATES,
    "month": _DATES,
    "day": _DATES,
    "hour": _TIMES,
    "bucket": _EXACT | _DATES | {"decimal"},
    "truncate": _EXACT | {"decimal"},
}
_FIELD_SUFFIX = {"truncate": "trunc"}
_TEMPORAL = ("year", "month", "day", "hour")
_FORMS = (
    "write a column, `year(c)`, `month(c)`, `day(c)`, `hour(c)`, `bucket(n, c)` or `truncate(n, c)`"
)
_KEEPS_PARTITIONS = "a table that the lake already has keeps its partitions"
_ALL_DIGITS = Context(prec=40)


@dataclass(frozen=True, slots=True)
class Transform:
    """Partition field; `kind` is `identity` or a transform, `column` the source's spelling."""

    kind: str
    column: str
    width: int | None = None

    @property
    def family(self) -> tuple[str, str]:
        """Return the group; Iceberg allows one transform of each group per column."""
        return self.column, "time" if self.kind in _TEMPORAL else self.kind

    def field_name(self, lake_column: str) -> str:
        """Return the name that Iceberg gives to the partition field."""
        if self.kind == "identity":
            return lake_column
        return f"{lake_column}_{_FIELD_SUFFIX.get(self.kind, self.kind)}"

    def render(self, lake_column: str) -> str:
        """Return the transform in Spark SQL."""
        if self.kind == "identity":
            return lake_column
        return f"{self.kind}({'' if self.width is None else f'{self.width}, '}{lake_column})"

    def check_type(self, column_type: ColumnType) -> None:
        """Raise `Refused` if Iceberg has no such transform for the column's lake type."""
        lake_type = column_type.state.split("(")[0]
        takes = _TAKES.get(self.kind)
        if takes is not None and lake_type not in takes:
            raise Refused(
                f"{self.kind}() does not support {self.column!r}, which is {lake_type} in the lake",
                f"use {self.kind}() with {', '.join(sorted(takes))}",
            )

    def check_values(self, column_type: ColumnType) -> None:
        """Raise `Refused` if the type has values whose partition the jobs cannot write."""
        lake_type = column_type.state
        if self.kind == "identity" and lake_type in ("float", "double"):
            raise Refused(
                f"{self.column!r}, a {column_type.base}, may be NaN or infinite, which no partition"
                " can be",
                f"partition by another column, or remove the entry; {_KEEPS_PARTITIONS}",
            )
        if self.kind == "truncate" and column_type.base == "numeric" and lake_type != "string":
            assert self.width is not None
            precision, scale = map(int, lake_type[len("decimal(") : -1].split(","))
            greatest = 10**precision - 1
            if greatest % self.width:
                least = f"-{Decimal(greatest).scaleb(-scale, _ALL_DIGITS):f}"
                raise Refused(
                    f"truncate() lowers {least}, the least value of {self.column!r}, below"
                    f" {lake_type}",
                    f"write `bucket(16, {self.column})`, or remove the entry; {_KEEPS_PARTITIONS}",
                )


def parse_transform(spelling: str) -> Transform:
    """Parse one entry of `partition_by`.

    >>> parse_transform("bucket(16, Customer Id)")
    Transform(kind='bucket', column='Customer Id', width=16)
    """
    text = spelling.strip()
    if text.count("(") != text.count(")") and '"' not in text:
        raise Refused(
            f"the partition transform {text!r} is cut off at its comma",
            'quote it inside brackets: `["bucket(16, c)"]`',
        )
    match = re.fullmatch(r"(\w+)\s*\(\s*(?:(\w+)\s*,)?\s*(.+?)\s*\)", text, re.DOTALL)
    if match is None:
        return Transform("identity", _column(text))
    kind, width, column = match.groups()
    kind = kind.lower().removesuffix("s")  # `years(c)` is Spark's older word for `year(c)`
    if kind not in _TAKES:
        raise Refused(f"unknown partition transform {match[1]!r}", _FORMS)
    if kind in _TEMPORAL:
        if width is not None:
            raise Refused(f"{kind}() accepts only a column", f"write `{kind}({column})`")
        return Transform(kind, _column(column))
    if width is None or not re.fullmatch(r"[1-9][0-9]{0,8}", width):
        inside = column if width is None else f"{width}, {column}"
        raise Refused(f"{kind}() needs a whole number first", f"write `{kind}({_ordered(inside)})`")
    return Transform(kind, _column(column), int(width))


def _ordered(inside: str) -> str:
    """Return width and column in this order; APIs of Iceberg have the column first."""
    turned = re.fullmatch(r"(.+?)\s*,\s*([1-9][0-9]{0,8})", inside, re.DOTALL)
    return f"{turned[2]}, {turned[1]}" if turned else f"16, {inside}"


def _column(text: str) -> str:
    if not text:
        raise Refused("an entry of partition_by is empty", _FORMS)
    return unquoted(text)
