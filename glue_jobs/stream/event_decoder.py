"""Decoding of Kafka records to a DataFrame of changelog rows; refused events get a reason.

The row is a pure function of the record and the table's declaration: the same event gives the same
row in every batch. The stream's job (`changelog_job`) decodes without it; this is for the rows that
Spark has to look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.stream.avro_values import without_refusal
from cdclake.jobs.stream.changelog_columns import decoded_columns
from cdclake.jobs.stream.plan_decoders import bytes_of, decoders_of, runs_of
from cdclake.plan import Plan, Table


class EventDecoder:
    """Decoder of one table's Kafka records."""

    def __init__(self, table: Table, plan: Plan, *, accepts_refused: bool = False) -> None:
        """Create a decoder; with `accepts_refused`, of events whose schema was refused as well."""
        self._task = _DecodeTask(replace(plan, tables=(table,)).to_json(), accepts_refused)
        columns = decoded_columns(table).items()
        self._schema = ", ".join(f"{SPARK.name(name)} {kind}" for name, kind in columns)

    def decode(self, records: DataFrame) -> DataFrame:
        """Decode records of the table's topic.

        The result has the changelog's columns without `cdc_ingested_at`, and the findings of
        `changelog_columns`, in no particular order. Kafka tombstones are dropped, since they carry
        no row.
        """
        passed = records.select("topic", "partition", "offset", "key", "value")
        return passed.mapInArrow(self._task, self._schema)


@dataclass(frozen=True, slots=True)
class _DecodeTask:
    plan_json: str  # of the table alone
    accepts_refused: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoders = decoders_of(self.plan_json)
        decoder = decoders.decoder(decoders.plan.tables[0])
        for batch in batches:
            for _, partition, records in runs_of(batch):
                values, keys = (bytes_of(records[name]) for name in ("value", "key"))
                if self.accepts_refused:
                    values = [without_refusal(value) for value in values]
                values = decoders.as_json(values)
                offsets = records["offset"].to_numpy()
                rows = decoder.decode(values, keys, partition, offsets)
                yield from rows.to_batches()
