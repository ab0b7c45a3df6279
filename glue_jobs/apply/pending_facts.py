"""Facts about pending changes: what needs more than an update of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdclake import naming


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFacts:
    """Facts about a set of changes."""

    events: int
    text_bytes: int  # of all texts and binary values
    truncates: bool
    carried_key_changes: bool  # creations with unavailable values: a key changed
    unavailable: tuple[str, ...]  # columns with a value that was not sent
    lowest: str  # positions without truncates; "" without changes
    highest: str
    lowest_lsn: int | None
    lowest_deleted_lsn: int | None  # None: nothing is deleted

    @staticmethod
    def from_raw(raw: Mapping[str, Any]) -> PendingFacts:
        """Return the facts from their fields in JSON."""
        return PendingFacts(**{**raw, "unavailable": tuple(raw["unavailable"])})


def facts_of(changes: pa.Table) -> PendingFacts:
    """Compute the facts about changelog rows."""
    operations = changes.column(naming.OP)
    is_truncate = pc.equal(operations, "t")
    lacks = pc.is_valid(changes.column(naming.UNAVAILABLE))
    carried = pc.and_(pc.equal(operations, "c"), lacks)
    listed = changes.column(naming.UNAVAILABLE).combine_chunks().flatten()
    positions = pc.min_max(changes.column(naming.POSITION).filter(pc.invert(is_truncate))).as_py()
    lsns = changes.column(naming.LSN)
    return PendingFacts(
        events=changes.num_rows,
        text_bytes=sum(_text_bytes(column) for column in changes.columns),
        truncates=bool(pc.any(is_truncate).as_py()),
        carried_key_changes=bool(pc.any(carried).as_py()),
        unavailable=tuple(sorted(pc.unique(listed).to_pylist())),
        lowest=positions["min"] or "",
        highest=positions["max"] or "",
        lowest_lsn=pc.min(lsns).as_py(),
        lowest_deleted_lsn=pc.min(lsns.filter(pc.equal(operations, "d"))).as_py(),
    )


def _text_bytes(values: pa.ChunkedArray) -> int:
    if not (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        return 0
    return pc.sum(pc.binary_length(values).cast(pa.int64())).as_py() or 0
