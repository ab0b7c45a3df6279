"""Decoded records as a DataFrame, for the few of them that are looked at one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.stream.changelog_columns import REFUSAL
from cdclake.jobs.stream.deduplicate import identity
from cdclake.jobs.stream.event_decoder import EventDecoder
from cdclake.jobs.stream.partition_summary import PartitionSummary, combined, summarize
from cdclake.jobs.stream.refusal_reasons import Reason, first_reason
from cdclake.plan import Plan, Table


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """Rows of records, refused ones among them, and a summary of each Kafka partition."""

    rows: DataFrame
    parts: Sequence[PartitionSummary]


@contextmanager
def decoded_again(
    records: DataFrame, table: Table, plan: Plan, refused: Reason
) -> Iterator[DecodedRows]:
    """Decode quarantined records of the table; `refused` is a further reason to refuse them."""
    rows = EventDecoder(table, plan, accepts_refused=True).decode(records)
    reason = F.coalesce(F.col(REFUSAL), first_reason([refused]))
    with persisted(rows.withColumn(REFUSAL, reason)) as held:
        yield DecodedRows(held, _summaries(held, table))


def _summaries(rows: DataFrame, table: Table) -> list[PartitionSummary]:
    columns = identity(table)

    def summarized(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            block = pa.Table.from_batches([batch])
            for partition in pc.unique(block[naming.PARTITION]).to_pylist():
                part = block.filter(pc.equal(block[naming.PARTITION], partition))
                summary = summarize(part, partition, columns).to_json()
                yield pa.RecordBatch.from_pydict({"summary": [summary]})

    found = rows.mapInArrow(summarized, "summary string").collect()
    return combined(PartitionSummary.from_json(row["summary"]) for row in found)
