"""Comparison of two equally ordered streams of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cdclake.verify.columns import ComparedColumn

Texts = tuple[str | None, ...]
ABSENT = ""  # the digest of a missing row


@dataclass(frozen=True, slots=True)
class Row:
    """Row in the form of both sides: hash of the key, key, and text of each column."""

    hash: int
    key: str
    texts: Texts

    @staticmethod
    def of(raw: tuple[Any, ...]) -> Row:
        """Create a row from the result of a statement of `Comparable`."""
        return Row(raw[0], raw[1], tuple(raw[2:]))

    @property
    def place(self) -> tuple[int, str]:
        """Sort key of both streams."""
        return (self.hash, self.key)


def pairs(source: Iterable[Row], lake: Iterable[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Yield pairs of rows with equal keys, with None for a missing row; one pair in memory."""
    sources, lakes = iter(source), iter(lake)
    left, right = next(sources, None), next(lakes, None)
    while left is not None or right is not None:
        if right is None or (left is not None and left.place < right.place):
            yield left, None
            left = next(sources, None)
        elif left is None or right.place < left.place:
            yield None, right
            right = next(lakes, None)
        else:
            yield left, right
            left, right = next(sources, None), next(lakes, None)


def differing(
    source: Iterable[Row], lake: Iterable[Row], columns: tuple[ComparedColumn, ...]
) -> Iterator[tuple[int, str]]:
    """Yield hash and key of every row that is missing, extra or different."""
    for left, right in pairs(source, lake):
        if left is None or right is None:
            some = left or right
            assert some is not None
            yield some.place
        elif differing_columns(left.texts, right.texts, columns):
            yield left.place


def differing_columns(
    source: Texts, lake: Texts, columns: tuple[ComparedColumn, ...]
) -> tuple[ComparedColumn, ...]:
    """Return the columns whose values differ between two rows of one key, by type."""
    if source == lake:
        return ()
    return tuple(
        column
        for column, left, right in zip(columns, source, lake, strict=True)
        if left != right and not _same(column, left, right)
    )


def _same(column: ComparedColumn, source: str | None, lake: str | None) -> bool:
    if source is None or lake is None:
        return False
    return column.source_normal(source) == column.lake_normal(lake)


def source_digest(row: Row, columns: tuple[ComparedColumn, ...]) -> str:
    """Return a digest of the source's row, equal to `lake_digest` of an equal row of the lake."""
    return _digest(
        None if text is None else column.source_normal(text)
        for column, text in zip(columns, row.texts, strict=True)
    )


def lake_digest(row: Row, columns: tuple[ComparedColumn, ...]) -> str:
    """Return a digest of the lake's row."""
    return _digest(
        None if text is None else column.lake_normal(text)
        for column, text in zip(columns, row.texts, strict=True)
    )


def _digest(normals: Iterable[str | None]) -> str:
    joined = repr(list(normals)).encode("utf-8", "surrogatepass")
    return hashlib.md5(joined, usedforsecurity=False).hexdigest()


def shown(texts: Texts, columns: tuple[ComparedColumn, ...], wanted: set[str]) -> Mapping[str, Any]:
    """Return the readable values of the wanted columns."""
    return {
        column.name: None if text is None else column.show(text)
        for column, text in zip(columns, texts, strict=True)
        if column.name in wanted
    }
