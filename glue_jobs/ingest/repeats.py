"""Repeats: the same event read twice, which a connector's restart makes by sending a suffix again.

The identity of an event is (epoch, table, phase, LSN, op, key): never its offset or the previous
commit's LSN, which a restart may change (contract, section 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.iceberg.dialect import SPARK
from cdclake.plan import Table
from glue_jobs.ingest.decode import REFUSAL
from glue_jobs.ingest.fields import ABSENT, MISFITS
from glue_jobs.runtime.stamps import ChangesStamp


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSummary:
    """What one Kafka partition's share of a batch holds; LSNs are NULL without accepted events."""

    partition: int
    first_offset: int
    next_offset: int
    accepted: int
    refused: int
    truncates: int
    carried_key_changes: int  # creations with unavailable values: a key changed
    unavailable: list[str]  # columns of which a value was not sent
    rows_at_one_lsn: int  # at most
    lowest_lsn: int | None
    highest_lsn: int | None
    lowest_deleted_lsn: int | None
    epoch: int | None
    lowest_epoch: int | None
    snapshot_read_at: int | None  # microseconds; one for all rows of a table's snapshot
    snapshot_read_until: int | None
    rows: int  # events that bring a row, and are not refused
    lacking: int  # of these, those that lack a declared column
    misfits: int  # events that hold a column in another form than the declared
    lowest_row_epoch: int | None  # of events that bring a row; and the lowest previous commit
    lowest_row_prev: int | None


def identity(table: Table) -> list[str]:
    """The log's columns that tell one event of a table from another."""
    return [naming.EPOCH, naming.PHASE, naming.LSN, naming.OP, *table.key]


def may_repeat_within(summaries: list[PartitionSummary]) -> bool:
    """Whether the batch itself may hold an event twice: then two rows stand at one LSN."""
    return any(part.rows_at_one_lsn > 1 for part in summaries)


def without_repeats(changes: DataFrame, table: Table) -> DataFrame:
    """One row of each identity within the batch's accepted events: the one that was sent first.

    Never any: copies may name different previous commits, and a mix of copies could put two changes
    of one key the wrong way round.
    """
    copies = Window.partitionBy(*identity(table)).orderBy(naming.OFFSET)
    numbered = changes.withColumn("cdc__copy", F.row_number().over(copies))
    return numbered.where(F.col("cdc__copy") == 1).drop("cdc__copy")


def may_repeat(summaries: list[PartitionSummary], stamp: ChangesStamp) -> bool:
    """Whether the batch starts at or below what the log holds, so that the log must be looked up.

    Rows of one initial snapshot all stand at one LSN: they go on where they were, unless another
    reading of the table (another `source.ts`) shows that the snapshot began again.
    """
    for part in summaries:
        mark = stamp.lsn_marks.get(part.partition)
        if mark is None or part.lowest_lsn is None or part.epoch != stamp.epoch:
            continue
        if part.lowest_lsn < mark:
            return True
        if part.lowest_lsn == mark and not _goes_on_with_snapshot(part, stamp):
            return True
    return False


def _goes_on_with_snapshot(part: PartitionSummary, stamp: ChangesStamp) -> bool:
    return (
        part.snapshot_read_at is not None
        and part.snapshot_read_at == part.snapshot_read_until == stamp.snapshot_read_at
    )


def not_in_log(changes: DataFrame, log: DataFrame, table: Table, lowest_lsn: int) -> DataFrame:
    """The changes whose identity the log does not hold; reads only the log's recent files."""
    recent = log.where(F.col(naming.LSN) >= lowest_lsn).select(*identity(table))
    match = [changes[name].eqNullSafe(recent[name]) for name in identity(table)]
    return changes.join(recent, match, "left_anti")


_LOWEST = (
    "first_offset", "lowest_epoch", "snapshot_read_at", "lowest_row_epoch", "lowest_row_prev",
)  # fmt: skip
_GREATEST = ("next_offset", "epoch", "snapshot_read_until")
_SUMMED = (
    "accepted", "refused", "truncates", "carried_key_changes", "rows", "lacking", "misfits",
)  # fmt: skip
# Refused for its key: a key column that is gone makes every key wrong.
_BY_KEY = f"({REFUSAL} LIKE 'NULL_KEY%' OR {REFUSAL} LIKE 'KEY_MISMATCH%')"
IS_ROW = f"{naming.OP} IN ('c', 'u', 'r') AND ({REFUSAL} IS NULL OR {_BY_KEY})"


def summarize(changes: DataFrame, table: Table) -> list[PartitionSummary]:
    """One summary per Kafka partition of the decoded batch."""
    at_one_lsn = _counted() | {
        _lacks(index): f"count_if(array_contains({naming.UNAVAILABLE}, {SPARK.text(column)}))"
        for index, column in enumerate(table.carried)
    }
    lacks = [_lacks(index) for index in range(len(table.carried))]
    in_partition = {
        **{name: f"min({name})" for name in _LOWEST},
        **{name: f"max({name})" for name in _GREATEST},
        **{name: f"sum({name})" for name in (*_SUMMED, *lacks)},
        "rows_at_one_lsn": "max(accepted)",
        "lowest_lsn": "min(lsn)",
        "highest_lsn": "max(lsn)",
        "lowest_deleted_lsn": "min(IF(deletes > 0, lsn, NULL))",
    }
    by_lsn = changes.groupBy(
        F.expr(f"{naming.PARTITION} AS partition"),
        F.expr(f"IF({REFUSAL} IS NULL, {naming.LSN}, NULL) AS lsn"),
    ).agg(*_named(at_one_lsn))
    rows = by_lsn.groupBy("partition").agg(*_named(in_partition)).collect()
    return [_summary(row.asDict(), table) for row in rows]


def _counted() -> dict[str, str]:
    """Aggregates of the events at one LSN.

    As text: a call from Python to Java for each part of them would take longer than the sums. Of
    numbers only: a set or the least of some texts would have Spark sort instead of hash.
    """
    accepted = f"{REFUSAL} IS NULL"
    key_change = f"{naming.OP} = 'c' AND {naming.UNAVAILABLE} IS NOT NULL"
    read_at = f"IF({accepted} AND {naming.OP} = 'r', unix_micros({naming.COMMITTED_AT}), NULL)"
    return {
        "first_offset": f"min({naming.OFFSET})",
        "next_offset": f"max({naming.OFFSET}) + 1",
        "accepted": f"count_if({accepted})",
        "refused": f"count_if(NOT {accepted})",
        "truncates": f"count_if({accepted} AND {naming.OP} = 't')",
        "carried_key_changes": f"count_if({accepted} AND {key_change})",
        "deletes": f"count_if({accepted} AND {naming.OP} = 'd')",
        "epoch": f"max(IF({accepted}, {naming.EPOCH}, NULL))",
        "lowest_epoch": f"min(IF({accepted}, {naming.EPOCH}, NULL))",
        "snapshot_read_at": f"min({read_at})",
        "snapshot_read_until": f"max({read_at})",
        "rows": f"count_if({IS_ROW})",
        "lacking": f"count_if({IS_ROW} AND {ABSENT} IS NOT NULL)",
        "misfits": f"count_if({MISFITS} IS NOT NULL)",
        "lowest_row_epoch": f"min(IF({IS_ROW}, {naming.EPOCH}, NULL))",
        "lowest_row_prev": f"min(IF({IS_ROW}, {naming.PREV_COMMIT_LSN}, NULL))",
    }


def _lacks(index: int) -> str:
    return f"lacks_{index}"


def _named(aggregates: Mapping[str, str]) -> list[Expression]:
    return [F.expr(f"{aggregate} AS {name}") for name, aggregate in aggregates.items()]


def _summary(found: dict[str, Any], table: Table) -> PartitionSummary:
    lacking = [found.pop(_lacks(index)) for index in range(len(table.carried))]
    unavailable = [name for name, count in zip(table.carried, lacking, strict=True) if count]
    return PartitionSummary(**found, unavailable=unavailable)
