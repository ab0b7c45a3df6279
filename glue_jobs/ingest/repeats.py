"""Repeats: the same event read twice, which a connector's restart makes by sending a suffix again.

The identity of an event is (epoch, table, phase, LSN, op, key): never its offset or the previous
commit's LSN, which a restart may change (contract, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.plan import Table
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
    unavailable: list[str]  # columns of which a value was not sent, perhaps more than once
    distinct_lsns: int
    lowest_lsn: int | None
    highest_lsn: int | None
    epoch: int | None
    snapshot_read_at: int | None  # microseconds; one for all rows of a table's snapshot
    snapshot_read_until: int | None


def identity(table: Table) -> list[str]:
    """The log's columns that tell one event of a table from another."""
    return [naming.EPOCH, naming.PHASE, naming.LSN, naming.OP, *table.key]


def may_repeat_within(summaries: list[PartitionSummary]) -> bool:
    """Whether the batch itself may hold an event twice: then two rows stand at one LSN."""
    return any(part.distinct_lsns < part.accepted for part in summaries)


def without_repeats(changes: DataFrame, table: Table) -> DataFrame:
    """One row of each identity within the batch's accepted events."""
    return changes.dropDuplicates(identity(table))


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


def summarize(changes: DataFrame, refusal: str) -> list[PartitionSummary]:
    """One summary per Kafka partition of the decoded batch."""
    accepted = f"{refusal} IS NULL"
    lsn = f"IF({accepted}, {naming.LSN}, NULL)"
    snapshot_row = f"{accepted} AND {naming.OP} = 'r'"
    read_at = f"IF({snapshot_row}, unix_micros({naming.COMMITTED_AT}), NULL)"
    key_change = f"{naming.OP} = 'c' AND {naming.UNAVAILABLE} IS NOT NULL"
    facts = {
        "first_offset": f"min({naming.OFFSET})",
        "next_offset": f"max({naming.OFFSET}) + 1",
        "accepted": f"count_if({accepted})",
        "refused": f"count_if(NOT {accepted})",
        "truncates": f"count_if({accepted} AND {naming.OP} = 't')",
        "carried_key_changes": f"count_if({accepted} AND {key_change})",
        "unavailable": f"flatten(collect_set({naming.UNAVAILABLE}))",
        "distinct_lsns": f"size(collect_set({lsn}))",
        "lowest_lsn": f"min({lsn})",
        "highest_lsn": f"max({lsn})",
        "epoch": f"max(IF({accepted}, {naming.EPOCH}, NULL))",
        "snapshot_read_at": f"min({read_at})",
        "snapshot_read_until": f"max({read_at})",
    }
    # As text: a call from Python to Java for each part of them would take longer than the sums.
    rows = (
        changes.groupBy(naming.PARTITION)
        .agg(*(F.expr(f"{fact} AS {name}") for name, fact in facts.items()))
        .withColumnRenamed(naming.PARTITION, "partition")
        .collect()
    )
    return [PartitionSummary(**row.asDict()) for row in rows]
