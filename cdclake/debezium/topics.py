"""Settings of the pipeline's topics; automatic creation is off, locally and on AWS."""

from __future__ import annotations

from cdclake.debezium.record_limit import MAX_RECORD_BYTES

RETENTION_DAYS = 7
# Kafka deletes a segment when its newest record is that old, and may write to a segment for a week:
# `segment.ms` is Kafka's default, as Express brokers do not list it among the settings to change.
LONGEST_KEPT_DAYS = RETENTION_DAYS + 7
# Kafka orders a table's events only within one partition.
PARTITIONS = 1
TOPIC_SETTINGS = {
    "retention.ms": str(RETENTION_DAYS * 24 * 3600 * 1000),
    "cleanup.policy": "delete",
    "max.message.bytes": str(MAX_RECORD_BYTES),
}
# Connect's own topics, which need only the newest record of each key.
OFFSETS_SETTINGS = {"cleanup.policy": "compact"}


def durable_settings(replicas: int) -> dict[str, str]:
    """Return the settings that keep acknowledged records of a topic when a broker fails.

    An existing cluster's defaults may permit leaders that lack such records. One broker may be
    missing: each update of a cluster restarts the brokers one by one.
    """
    return {
        "min.insync.replicas": str(replicas - 1),
        "unclean.leader.election.enable": "false",
    }
