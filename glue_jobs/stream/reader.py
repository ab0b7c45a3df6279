"""A table's records, decoded and summed up, and held while they are worked on."""

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
    """A batch's records, the rows that they make, and what each Kafka partition's share holds."""

    records: DataFrame
    rows: DataFrame
    parts: list[PartitionSummary]

    def show(self, sign: str) -> bool:
        """Whether some event is such a one (`PartitionSummary.signs`)."""
        return any(part.has(sign) for part in self.parts)


class TableReader:
    """Reads one table's Kafka records, as many batches of them as come.

    Its expressions are built once: they are the same for every batch, and building some hundreds of
    them over py4j would cost a small batch more than running them.
    """

    def __init__(self, table: Table, plan: Plan) -> None:
        self._decoder = EventDecoder(table, plan)
        self._summarizer = Summarizer(table)

    @contextmanager
    def read(self, records: DataFrame, *, needs_slow_decode: bool) -> Iterator[Decoded]:
        """What the records hold. `needs_slow_decode`: some may well be read rightly by name only.

        If some are, though it was not expected, the records are decoded a second time.
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
        """What records of long ago hold, by name; `refused` speaks against some that fit."""
        rows = self._decoder.decode(records)
        reason = F.coalesce(F.col(REFUSAL), first_reason([refused]))
        with self._held(records, rows.withColumn(REFUSAL, reason)) as decoded:
            yield decoded

    @contextmanager
    def _held(self, records: DataFrame, rows: DataFrame) -> Iterator[Decoded]:
        with persisted(rows):
            yield Decoded(records, rows, self._summarizer.summarize(rows))
