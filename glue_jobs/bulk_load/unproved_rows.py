"""Rows of a load with a value that the reading tasks could not prove, for Spark to judge.

They are read again in the changelog's form, and Spark's own conditions refuse or accept them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.jobs.bulk_load.load_task import SentRows
from cdclake.jobs.bulk_load.loaded_rows import ReadPlace, first_offset, read_events
from cdclake.jobs.bulk_load.source_reader import SourceReader
from cdclake.jobs.runtime.python_worker import reduce_task_overhead
from cdclake.jobs.stream.changelog_columns import arrow_type
from cdclake.plan import Plan, Table
from cdclake.postgres.bulk_read import sent_rows_in_both_forms, value_name
from cdclake.postgres.event_values import is_json


@dataclass(frozen=True, slots=True, kw_only=True)
class UnprovedRows:
    """Reader of the unproved rows of some chunks, in a fixed order."""

    reader: SourceReader
    table: Table
    plan: Plan
    place: ReadPlace

    def events(self, spark: SparkSession, chunks: Mapping[int, str]) -> DataFrame:
        """Return the rows as `read_events` does; each evaluation reads the source."""
        kinds = self._kinds()
        columns = [f"{value_name(index)} {kind}" for index, kind in enumerate(kinds)]
        schema = ", ".join([*columns, f"{naming.OFFSET} bigint"])
        numbered = spark.sparkContext.parallelize(list(chunks.items()), len(chunks))
        source = spark.createDataFrame(numbered, "chunk int, condition string")
        rows = source.mapInArrow(self._read, schema)
        return read_events(rows, F.col(naming.OFFSET), self.table, self.plan, self.place)

    def _kinds(self) -> Sequence[str]:
        types = [column.column_type for column in self.table.columns]
        return ["string" if is_json(each) else each.log for each in types]

    def _read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reduce_task_overhead()
        for batch in batches:
            for chunk in batch.to_pylist():
                yield from self._rows(chunk["chunk"], chunk["condition"])

    def _rows(self, number: int, condition: str) -> Iterator[pa.RecordBatch]:
        names = [value_name(index) for index, _ in enumerate(self.table.columns)]
        types = [arrow_type(kind) for kind in self._kinds()]
        sent, offset = SentRows(self.table, has_state=False), first_offset(self.place.epoch, number)
        query = sent_rows_in_both_forms(self.table, condition)
        with self.reader.batches(query) as found:
            for both in found:
                rows = both.filter(sent.unproved(both))
                offsets = np.arange(offset, offset + rows.num_rows, dtype=np.int64)
                offset += rows.num_rows
                values = [rows.column(n).cast(t) for n, t in zip(names, types, strict=True)]
                yield pa.RecordBatch.from_arrays(
                    [*values, pa.array(offsets)], [*names, naming.OFFSET]
                )
