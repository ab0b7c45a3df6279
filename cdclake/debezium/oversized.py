"""Markers that replace events that are too large for Kafka, in the quarantine.

The connector writes a marker with the event's key and place, but without its row
(`java/`, `OversizedRecords`). The quarantine keeps it until a resync has read the row.
"""

from __future__ import annotations

from dataclasses import dataclass

from cdclake import naming
from cdclake.debezium.changelog_rows import epoch_of, read_event, sequence_of
from cdclake.debezium.field_values import json_text
from cdclake.debezium.position import SNAPSHOT_PHASE, STREAM_PHASE, position_text
from cdclake.debezium.refusals import RefusedEvent
from cdclake.plan import Table


@dataclass(frozen=True, slots=True)
class Marker:
    """Marker of one event."""

    op: str  # of the event
    position: str
    key: tuple[str, ...] | None  # values as text, in the key's order; None: unknown or too large

    @staticmethod
    def parse(value: bytes, offset: int, table: Table) -> Marker:
        """Parse a marker at this offset; raise RefusedEvent if it has no place in the order."""
        event = read_event(value)
        if event is None or type(facts := event.get(naming.OVERSIZED)) is not dict:
            raise RefusedEvent("not the marker of an event that is too large")
        prev, lsn = sequence_of(event["source"])
        op = str(facts.get("op"))
        phase = SNAPSHOT_PHASE if op == "r" else STREAM_PHASE
        key = facts.get("key") or {}
        sent = [key.get(column.source) for column in table.key_columns]
        return Marker(
            op=op,
            position=position_text(epoch_of(event), prev, phase, lsn, offset),
            key=None if None in sent else tuple(json_text(value) for value in sent),
        )


def remedy(table: str) -> str:
    """Return what an operator can do about a row that is too large."""
    return (
        "exclude the column in the pipeline file, or store a smaller value in the source; then run"
        f" `cdclake resync {table}`"
    )
