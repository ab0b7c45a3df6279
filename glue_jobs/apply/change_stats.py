"""Statistics of a set of changes: what needs more than a merge, and the range of positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from cdclake import naming
from cdclake.iceberg import upsert
from cdclake.jobs.iceberg.pruned_scan import Bounds
from cdclake.plan import Table


@dataclass(frozen=True, slots=True)
class PositionRange:
    """Range of a set of changes, without truncates."""

    events: int
    lowest: str  # positions; empty if there are no changes
    highest: str
    lacking: bool  # some change lacks a value
    only_creations: bool  # no change needs an existing row
    bounds: Bounds  # of `upsert.bounded_keys`


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStats:
    """Properties of a set of changes that need more than a merge."""

    events: int
    truncates: bool
    carried_key_changes: bool  # creations with unavailable values: a key changed
    unavailable: frozenset[str]  # columns with a value that was not sent
    lowest_deleted_lsn: int | None  # None: nothing is deleted
    reach: PositionRange | None = None  # if the same query computed it; invalid if it `truncates`


_STATS = {
    "events": "count(1)",
    "truncates": f"coalesce(bool_or({naming.OP} = 't'), false)",
    "carried_key_changes": (
        f"coalesce(bool_or({naming.OP} = 'c' AND {naming.UNAVAILABLE} IS NOT NULL), false)"
    ),
    "unavailable": f"flatten(collect_set({naming.UNAVAILABLE}))",
    "lowest_deleted_lsn": f"min(CASE WHEN {naming.OP} = 'd' THEN {naming.LSN} END)",
}


def stats_of(table: Table, changes: DataFrame) -> ChangeStats:
    """Compute the statistics of changelog rows, including their range."""
    row = changes.selectExpr(*_STATS.values(), *upsert.reach(table)).collect()[0]
    facts: dict[str, Any] = dict(zip(_STATS, row, strict=False))
    facts["unavailable"] = frozenset(facts["unavailable"])
    return ChangeStats(**facts, reach=_range(table, row[len(_STATS) :]))


def range_of(table: Table, changes: DataFrame) -> PositionRange:
    """Compute the range of changelog rows without truncates."""
    return _range(table, changes.selectExpr(*upsert.reach(table)).collect()[0])


def _range(table: Table, found: Sequence[Any]) -> PositionRange:
    events, lowest, highest, lacking, only_creations, *ends = found
    bounds = zip(upsert.bounded_keys(table), zip(ends[::2], ends[1::2], strict=True), strict=True)
    return PositionRange(events, lowest, highest, lacking, only_creations, dict(bounds))
