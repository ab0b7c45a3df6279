"""The newest heartbeat in Kafka: how long a change takes from its commit to there."""

from __future__ import annotations

from cdclake.jobs.stream.heartbeats import SentHeartbeat
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.topic_records import records_at
from cdclake.local.lake.topics import end_offsets


def heartbeat_delays(lake: LocalLake) -> dict[str, float] | None:
    """Return the seconds from its commit until the connector and until Kafka had it.

    None before the first one that was streamed.
    """
    topic = lake.plan.heartbeat_rows_topic
    end = end_offsets(lake.kafka, [topic]).get(topic, {}).get(0, 0)
    for record in records_at(lake.kafka, topic, [(0, end - 1)] if end else []):
        sent = SentHeartbeat.of(record.value or b"")
        if sent is not None and sent.committed_us and not sent.is_read:
            times = {"connector_s": sent.sent_ms, "kafka_s": record.written_ms}
            return {hop: _seconds(ms, sent.committed_us) for hop, ms in times.items()}
    return None


def _seconds(ms: int, committed_us: int) -> float:
    """Return the seconds between; the clocks of two machines may differ."""
    return max(0.0, round(ms / 1e3 - committed_us / 1e6, 3))
