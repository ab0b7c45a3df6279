"""Refusal of events of erased keys, where they are decoded.

Such an event goes neither to the changelog nor to the quarantine, which is a table, too. A batch
whose events are all newer than the last erasure hashes no key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdclake import naming
from cdclake.debezium.record_key import comparable_key, record_key
from cdclake.erasures import ErasedKeys
from cdclake.jobs.stream.changelog_columns import REFUSAL
from cdclake.plan import Table

if TYPE_CHECKING:
    from pyspark import Broadcast, SparkContext


@dataclass(frozen=True, slots=True)
class SharedErasedKeys:
    """One table's erased keys for Spark's tasks, which read them only if they have older events."""

    newest: str  # `ErasedKeys.newest`
    keys: Broadcast[ErasedKeys]

    @staticmethod
    def of(erased: ErasedKeys, spark: SparkContext) -> SharedErasedKeys:
        """Broadcast the keys; in a job's own description they would be sent with every batch."""
        return SharedErasedKeys(erased.newest, spark.broadcast(erased))

    def dropped(self, rows: pa.Table, records: pa.RecordBatch, table: Table) -> pa.Table:
        """Do the same as `without_erased`."""
        if not pc.any(pc.less(rows[naming.POSITION], self.newest)).as_py():
            return rows
        return without_erased(rows, records, self.keys.value, table)


def without_erased(
    rows: pa.Table, records: pa.RecordBatch, erased: ErasedKeys, table: Table
) -> pa.Table:
    """Drop the decoded events of erased keys that are older than their erasure.

    A refused event is recognized by its record's key. One without a readable position stays: it may
    be newer than the erasure.
    """
    positions = rows[naming.POSITION]
    may_be = pc.fill_null(pc.less(positions, erased.newest), False)
    candidates = np.flatnonzero(may_be.to_numpy())
    if not len(candidates):
        return rows
    chosen = rows.take(pa.array(candidates))
    found = zip(_keys(chosen, records, table), chosen[naming.POSITION].to_pylist(), strict=True)
    is_erased = [position < erased.erased_at(key) for key, position in found]
    if not any(is_erased):
        return rows
    kept = np.ones(rows.num_rows, bool)
    kept[candidates[is_erased]] = False
    return rows.filter(pa.array(kept))


def _keys(rows: pa.Table, records: pa.RecordBatch, table: Table) -> Iterator[Sequence[Any] | None]:
    """Yield the comparable key of each row."""
    columns = [rows[name].to_pylist() for name in table.key]
    refusals, offsets = rows[REFUSAL].to_pylist(), rows[naming.OFFSET].to_pylist()
    places = {offset: at for at, offset in enumerate(records["offset"].to_pylist())}
    for number, key in enumerate(zip(*columns, strict=True)):
        if refusals[number] is None:
            yield comparable_key(table, key)
        else:
            at = places[offsets[number]]
            yield record_key(table, records["key"][at].as_py(), records["value"][at].as_py())
