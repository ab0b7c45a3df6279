"""Heartbeats: the connector's rows of its own table, which prove how far it has read the source."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from cdclake import naming


@dataclass(frozen=True, slots=True, kw_only=True)
class SentHeartbeat:
    """Heartbeat as the connector sent it."""

    epoch: int
    is_read: bool  # a row of a snapshot, not a streamed change
    lsn: int
    sent_ms: int
    committed_us: int  # commit time of the row, in microseconds; 0: not known

    @staticmethod
    def of(value: bytes) -> SentHeartbeat | None:
        """Parse the value of its record; None if it is not one that the connector sends.

        Other clients may write to the topic, and a bad record must not stop all tables.
        """
        try:
            event: dict[str, Any] = json.loads(value)
            return SentHeartbeat(
                epoch=int(event[naming.EPOCH]),
                is_read=event["op"] == "r",
                lsn=int(event["source"].get("lsn") or 0),
                sent_ms=int(event.get("ts_ms") or 0),
                committed_us=int(event["source"].get("ts_us") or 0),
            )
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            return None


def heartbeats_json(values: Iterable[bytes]) -> str:
    """Return the heartbeats among these records' values as one line of JSON, in their order."""
    sent = (SentHeartbeat.of(value) for value in values)
    return json.dumps([asdict(heartbeat) for heartbeat in sent if heartbeat is not None])


def parse_heartbeats(text: str) -> list[SentHeartbeat]:
    """Parse what `heartbeats_json` returned."""
    return [SentHeartbeat(**fields) for fields in json.loads(text)]
