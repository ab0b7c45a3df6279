"""What a set of changes holds: what calls for more than a merge, and how far they reach."""

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
    """What is known of a set of changes, truncates not among them, as a whole."""

    events: int
    lowest: str  # positions; empty if there are no changes
    highest: str
    lacking: bool  # some change does not hold every value
    only_creations: bool  # no change presumes a row
    bounds: Bounds  # of `upsert.bounded_keys`


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStats:
    """What a set of changes holds that calls for more than a merge."""

    events: int
    truncates: bool
    carried_key_changes: bool  # creations with unavailable values: a key changed
    unavailable: frozenset[str]  # columns of which a value was not sent
    lowest_deleted_lsn: int | None  # None: nothing is deleted
    reach: PositionRange | None = (
        None  # where it was asked for in the same look; void if it `truncates`
    )


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
    """The facts of rows in the log's schema, with their reach."""
    row = changes.selectExpr(*_STATS.values(), *upsert.reach(table)).collect()[0]
    facts: dict[str, Any] = dict(zip(_STATS, row, strict=False))
    facts["unavailable"] = frozenset(facts["unavailable"])
    return ChangeStats(**facts, reach=_range(table, row[len(_STATS) :]))


def range_of(table: Table, changes: DataFrame) -> PositionRange:
    """The reach of rows in the log's schema, without truncates."""
    return _range(table, changes.selectExpr(*upsert.reach(table)).collect()[0])


def _range(table: Table, found: Sequence[Any]) -> PositionRange:
    events, lowest, highest, lacking, only_creations, *ends = found
    bounds = zip(upsert.bounded_keys(table), zip(ends[::2], ends[1::2], strict=True), strict=True)
    return PositionRange(events, lowest, highest, lacking, only_creations, dict(bounds))
