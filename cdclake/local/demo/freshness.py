"""Freshness of the lake: time from a row's commit in the source to its first snapshot in the lake.

Computed from metadata: the snapshot that appends a row to its changelog makes it visible in
`<t>_current`, which is the state plus the changelog's tail. Rows of one append share one
`cdc_ingested_at`, which the append's stamp contains too; rows appended by Firehose share a file.
All times come from this machine's clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Append = TypeVar("Append", int, str)


@dataclass(frozen=True, slots=True)
class Appended(Generic[Append]):
    """Rows of one transaction that arrived with one append; times in microseconds."""

    append: Append  # the time of ingestion, or the file
    committed_at: int
    rows: int


@dataclass(frozen=True, slots=True)
class Freshness:
    """Percentiles over rows, in milliseconds; None where nothing streamed."""

    rows: int
    p50_ms: int | None
    p95_ms: int | None


def first_visible(stamps: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Map `ingested_through` to the commit time (ms) of the first snapshot with that stamp."""
    visible: dict[int, int] = {}
    for ingested_through, committed_ms in stamps:
        known = visible.get(ingested_through)
        visible[ingested_through] = committed_ms if known is None else min(known, committed_ms)
    return visible


def ages(
    appended: Iterable[Appended[Append]], visible: Mapping[Append, int]
) -> list[tuple[float, int]]:
    """Return (age in ms when visible, rows) per entry; raise KeyError for an unstamped append."""
    return [(visible[each.append] - each.committed_at / 1000, each.rows) for each in appended]


def freshness(shares: Iterable[tuple[float, int]]) -> Freshness:
    """Compute the percentiles of (age, rows) pairs, weighted by rows."""
    ordered = sorted(shares)
    total = sum(rows for _, rows in ordered)
    return Freshness(total, _percentile(ordered, total, 50), _percentile(ordered, total, 95))


def _percentile(ordered: list[tuple[float, int]], total: int, percent: int) -> int | None:
    """Return the smallest age that `percent` of the rows do not exceed."""
    seen = 0
    for age, rows in ordered:
        seen += rows
        if seen * 100 >= total * percent:
            return round(age)
    return None
