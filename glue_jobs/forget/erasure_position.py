"""Position of an erasure: the start of a transaction that the source commits for it.

Every event of an earlier transaction has a lower position, every event of a later one a greater
one. No clock is involved.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Protocol

from cdclake.activity import step
from cdclake.debezium.changelog_rows import epoch_of, sequence_of
from cdclake.debezium.event_parts import json_object
from cdclake.debezium.position import STREAM_PHASE, Position
from cdclake.errors import ComponentFailed
from cdclake.jobs.runtime.source import write_marker

_TIMEOUT_S = 300.0


class MarkerTopic(Protocol):
    """Topic of the heartbeat table, whose rows are the markers."""

    @property
    def poll_interval_s(self) -> float:
        """Pause between two readings."""

    def ends(self) -> dict[int, int]:
        """Return the end offset of each partition."""

    def values_since(self, ends: dict[int, int]) -> Iterable[bytes]:
        """Return the values of the records from these offsets on."""


def erasure_position(dsn: str, topic: MarkerTopic) -> str:
    """Commit a marker to the source, and return the start of its transaction.

    Raise ComponentFailed if the connector does not deliver it.
    """
    before = topic.ends()
    marker = os.urandom(16).hex()
    write_marker(dsn, marker)
    deadline = time.monotonic() + _TIMEOUT_S
    with step("wait for the position of the erasure"):
        while True:
            for value in topic.values_since(before):
                if marker.encode() in value:
                    return _start_of(value)
            if time.monotonic() > deadline:
                raise ComponentFailed(
                    f"the connector did not deliver a change of the source within {_TIMEOUT_S:.0f}"
                    " s; nothing was erased",
                    "see `cdclake status`, then run the command again",
                    component="connect",
                )
            time.sleep(topic.poll_interval_s)


def _start_of(value: bytes) -> str:
    event = json_object(value) or {}
    prev_commit_lsn, _ = sequence_of(event["source"])
    return str(Position(epoch_of(event), prev_commit_lsn, STREAM_PHASE, 0, 0))
