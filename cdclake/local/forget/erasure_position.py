"""Position of an erasure: the start of a transaction that the source commits for it.

Every event of an earlier transaction has a lower position, every event of a later one a greater
one. No clock is involved.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from cdclake.activity import step
from cdclake.debezium.changelog_rows import epoch_of, sequence_of
from cdclake.debezium.event_parts import json_object
from cdclake.debezium.position import STREAM_PHASE, Position
from cdclake.errors import ComponentFailed
from cdclake.jobs.runtime.source import write_marker
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.topic_records import read_records, retained

_TIMEOUT_S = 300.0
_POLL_S = 0.3


def erasure_position(lake: LocalLake) -> str:
    """Commit a marker to the source, and return the start of its transaction.

    Raise ComponentFailed if the connector does not deliver it.
    """
    topic = lake.plan.heartbeat_rows_topic
    before = {p: end for p, (_, end) in (retained(lake.kafka, topic) or {}).items()}
    marker = os.urandom(16).hex()
    write_marker(lake.dsn, marker)
    deadline = time.monotonic() + _TIMEOUT_S
    with step("wait for the position of the erasure"):
        while True:
            for value in _values_since(lake, topic, before):
                if marker.encode() in value:
                    return _start_of(value)
            if time.monotonic() > deadline:
                raise ComponentFailed(
                    f"the connector did not deliver a change of the source within {_TIMEOUT_S:.0f}"
                    " s; nothing was erased",
                    "see `cdclake status`, then run the command again",
                    component="connect",
                )
            time.sleep(_POLL_S)


def _values_since(lake: LocalLake, topic: str, before: dict[int, int]) -> Iterator[bytes]:
    now = retained(lake.kafka, topic) or {}
    ranges = {p: (max(low, before.get(p, 0)), end) for p, (low, end) in now.items()}
    for record in read_records(lake.kafka, topic, ranges):
        if record.value is not None:
            yield record.value


def _start_of(value: bytes) -> str:
    event = json_object(value) or {}
    prev_commit_lsn, _ = sequence_of(event["source"])
    return str(Position(epoch_of(event), prev_commit_lsn, STREAM_PHASE, 0, 0))
