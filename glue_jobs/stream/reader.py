"""Decoding and statistics of a table's records, cached while they are processed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.stream.batch_stats import NEEDS_SLOW_DECODE, PartitionSummary, Summarizer
from cdclake.jobs.stream.decode import REFUSAL, EventDecoder, Reason, first_reason
from cdclake.plan import Plan, Table


@dataclass(frozen=True, slots=True)
class Decoded:
    """A batch's records, their rows, and the statistics of each Kafka partition's share."""

    records: DataFrame
    rows: DataFrame
    parts: list[PartitionSummary]

    def show(self, sign: str) -> bool:
        """Return whether some event has the flag (`PartitionSummary.flags`)."""
        return any(part.has(sign) for part in self.parts)


class TableReader:
    """Reader of one table's Kafka records, used for all batches.

    Its expressions are built once: they are the same for every batch, and building some hundreds of
    them over py4j would cost a small batch more than running them.
    """

    def __init__(self, table: Table, plan: Plan) -> None:
        self._decoder = EventDecoder(table, plan)
        self._summarizer = Summarizer(table)

    @contextmanager
    def read(self, records: DataFrame, *, needs_slow_decode: bool) -> Iterator[Decoded]:
        """Decode the records; `needs_slow_decode` means that some probably have to be read by name.

        If that turns out only afterwards, the records are decoded a second time.
        """
        if not needs_slow_decode:
            with self._held(records, self._decoder.decode_plain(records)) as decoded:
                if not decoded.show(NEEDS_SLOW_DECODE):
                    yield decoded
                    return
        with self._held(records, self._decoder.decode(records)) as decoded:
            yield decoded

    @contextmanager
    def read_late(self, records: DataFrame, refused: Reason) -> Iterator[Decoded]:
        """Decode old records by field name; `refused` is a further reason to refuse them."""
        rows = self._decoder.decode(records)
        reason = F.coalesce(F.col(REFUSAL), first_reason([refused]))
        with self._held(records, rows.withColumn(REFUSAL, reason)) as decoded:
            yield decoded

    @contextmanager
    def _held(self, records: DataFrame, rows: DataFrame) -> Iterator[Decoded]:
        with persisted(rows):
            yield Decoded(records, rows, self._summarizer.summarize(rows))
