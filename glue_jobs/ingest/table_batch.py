"""One table's share of a micro-batch: decode, quarantine, append, apply."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.iceberg.schemas import changes_schema
from cdclake.plan import Plan, Table
from glue_jobs.ingest.append import append_changes, epoch_sweep, next_stamp, sweep_rows
from glue_jobs.ingest.decode import REFUSAL, decode_events
from glue_jobs.ingest.quarantine import quarantine
from glue_jobs.ingest.repeats import (
    PartitionSummary,
    may_repeat,
    not_in_log,
    summarize,
    with_refused_apart,
    without_repeats,
)
from glue_jobs.runtime.leases import Leases
from glue_jobs.runtime.stamps import ChangesStamp
from glue_jobs.runtime.tables import LakeTables
from glue_jobs.state.apply import apply_changes

log = logging.getLogger("cdclake.stream")

Ranges = Mapping[int, tuple[int, int]]  # Kafka partition -> first and next offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a table's share of a batch."""

    appended: int
    quarantined: int
    applied: bool  # the state holds everything that the log does, or is not applied in the stream


@dataclass(frozen=True, slots=True)
class TableBatch:
    """Brings one table's Kafka records into its log and, if it applies each batch, its state."""

    lake: LakeTables
    plan: Plan
    table: Table
    leases: Leases

    def run(self, events: DataFrame, ranges: Ranges, *, epoch: int, sweeps: list[str]) -> Outcome:
        """Process the records of the table's topic in `ranges`; replaying them changes nothing.

        `epoch` is the newest seen anywhere in the stream: a table that is behind it gets that
        epoch's sweep. `sweeps` are further positions below which nothing is valid any more.
        """
        stamped = self.lake.stamped(self.table.changes)
        stamp = ChangesStamp.from_json(stamped.stamp) if stamped.stamp else ChangesStamp()
        swept = [*sweeps, *([epoch_sweep(epoch)] if 0 < stamp.epoch < epoch else [])]
        decoded = self._decode(events, stamp).persist()
        try:
            summaries = summarize(decoded, REFUSAL)
            quarantined = self._quarantine(decoded, summaries)
            if not any(part.accepted for part in summaries) and not swept:
                return self._apply(0, quarantined, stamp, None, stamp.ingested_through)
            ingested_at = max(time.time_ns() // 1000, stamp.ingested_through + 1)
            rows = self._rows_to_append(decoded, summaries, stamp, swept, ingested_at).persist()
            try:
                return self._append_and_apply(
                    rows, ranges, stamped.snapshot_id, summaries, stamp, epoch, ingested_at,
                    quarantined,
                )  # fmt: skip
            finally:
                rows.unpersist()
        finally:
            decoded.unpersist()

    def _decode(self, events: DataFrame, stamp: ChangesStamp) -> DataFrame:
        """The decoded events that the log's stamp does not cover yet, each identity once."""
        fresh = events.where(F.col("topic") == self.table.topic)
        for partition, offset in stamp.offsets.items():
            fresh = fresh.where((F.col("partition") != partition) | (F.col("offset") >= offset))
        decoded = with_refused_apart(decode_events(fresh, self.table, self.plan), REFUSAL)
        return without_repeats(decoded, self.table)

    def _quarantine(self, decoded: DataFrame, summaries: list[PartitionSummary]) -> int:
        if not any(part.refused for part in summaries):
            return 0
        return quarantine(decoded, self.lake, self.table)

    def _rows_to_append(
        self,
        decoded: DataFrame,
        summaries: list[PartitionSummary],
        stamp: ChangesStamp,
        sweeps: list[str],
        ingested_at: int,
    ) -> DataFrame:
        columns = [name for name, _ in changes_schema(self.table, self.plan).columns]
        rows = decoded.where(F.col(REFUSAL).isNull())
        if may_repeat(summaries, stamp):
            lowest = min(p.lowest_lsn for p in summaries if p.lowest_lsn is not None)
            rows = not_in_log(rows, self.lake.read(self.table.changes), self.table, lowest)
        if sweeps:
            rows = rows.unionByName(sweep_rows(rows, sweeps))
        return rows.withColumn(naming.INGESTED_AT, F.timestamp_micros(F.lit(ingested_at))).select(
            *(F.col(f"`{name}`") for name in columns)
        )

    def _append_and_apply(
        self,
        rows: DataFrame,
        ranges: Ranges,
        read_from: int | None,
        summaries: list[PartitionSummary],
        stamp: ChangesStamp,
        epoch: int,
        ingested_at: int,
        quarantined: int,
    ) -> Outcome:
        count = rows.count()
        if count == 0:
            return self._apply(0, quarantined, stamp, None, stamp.ingested_through)
        append_changes(
            rows,
            self.lake,
            self.table.changes,
            ranges=ranges,
            read_from=read_from,
            stamp=next_stamp(
                stamp, summaries, epoch=max(epoch, stamp.epoch), ingested_at=ingested_at
            ),
        )
        return self._apply(count, quarantined, stamp, rows, ingested_at)

    def _apply(
        self,
        appended: int,
        quarantined: int,
        stamp: ChangesStamp,
        rows: DataFrame | None,
        through: int,
    ) -> Outcome:
        """Merge in the stream, unless another job holds the table: then a later batch catches up."""
        if self.table.apply != "each_batch":
            return Outcome(appended=appended, quarantined=quarantined, applied=True)
        if not self.leases.try_acquire(self.table.name):
            return Outcome(appended=appended, quarantined=quarantined, applied=False)
        try:
            apply_changes(
                self.lake,
                self.table,
                through=through,
                batch=rows,
                batch_follows=stamp.ingested_through,
            )
        finally:
            self.leases.release(self.table.name)
        return Outcome(appended=appended, quarantined=quarantined, applied=True)
