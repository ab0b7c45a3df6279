"""Decoders of a plan's tables in a Python worker, which serves many tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa

from cdclake.jobs.stream.avro_values import AvroValues
from cdclake.jobs.stream.block_decoder import BlockDecoder
from cdclake.jobs.stream.schema_registry import registry_of
from cdclake.plan import Plan, Table


class PlanDecoders:
    """The plan's tables by topic, with a decoder for each that has had events."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tables = {table.topic: table for table in plan.tables}
        self._decoders: dict[str, BlockDecoder] = {}
        self._avro = AvroValues(registry_of(plan)) if plan.format == "avro" else None

    def decoder(self, table: Table) -> BlockDecoder:
        """Return the table's decoder."""
        if table.name not in self._decoders:
            self._decoders[table.name] = BlockDecoder(table, self.plan)
        return self._decoders[table.name]

    def as_json(self, values: Sequence[bytes | None]) -> Sequence[bytes | None]:
        """Return the values of the tables' records as JSON, whatever the plan's format is."""
        return values if self._avro is None else self._avro.as_json(values)


@lru_cache(maxsize=4)
def decoders_of(plan_json: str) -> PlanDecoders:
    """Return the decoders of a plan; a worker keeps those of the last few."""
    return PlanDecoders(Plan.from_json(plan_json))


def bytes_of(values: pa.Array) -> Sequence[bytes | None]:
    """Return binary values as a list; `to_pylist` makes an Arrow scalar of each on the way."""
    listed: Sequence[bytes | None] = values.to_numpy(zero_copy_only=False).tolist()
    return listed


def runs_of(batch: pa.RecordBatch) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Divide Kafka records where the topic or the partition changes."""
    if batch.num_rows == 0:
        return
    topics = batch["topic"].dictionary_encode()
    codes, partitions = topics.indices.to_numpy(), batch["partition"].to_numpy()
    changes = np.flatnonzero((np.diff(codes) != 0) | (np.diff(partitions) != 0)) + 1
    bounds = [0, *(int(at) for at in changes), batch.num_rows]
    for start, end in pairwise(bounds):
        topic = topics.dictionary[int(codes[start])].as_py()
        yield topic, int(partitions[start]), batch.slice(start, end - start)
