"""Markers that replace events that are too large for Kafka, in the quarantine.

The connector writes a marker with the event's key and place, but without its row
(`java/`, `OversizedRecords`). The quarantine keeps it until a resync has read the row.
"""

from __future__ import annotations

import json

from cdclake import naming
from cdclake.debezium.changelog_rows import epoch_of, sequence_of
from cdclake.debezium.position import SNAPSHOT_PHASE, STREAM_PHASE, position_text


def marker_position(value: bytes, offset: int) -> str:
    """Return the position of the event that the marker replaced; `offset` is the marker's.

    Raises RefusedEvent if the marker has no place in the order.
    """
    marker = json.loads(value)
    prev, lsn = sequence_of(marker["source"])
    phase = SNAPSHOT_PHASE if marker[naming.OVERSIZED]["op"] == "r" else STREAM_PHASE
    return position_text(epoch_of(marker), prev, phase, lsn, offset)


def remedy(table: str) -> str:
    """Return what an operator can do about a row that is too large."""
    return (
        "exclude the column in the pipeline file, or store a smaller value in the source; then run"
        f" `cdclake resync {table}`"
    )
