"""How the pipeline's topics are made; no topic creates itself, neither locally nor on AWS."""

from __future__ import annotations

from cdclake.debezium.connector import MAX_RECORD_BYTES

RETENTION_DAYS = 7
# The order of a table's events is that of one partition.
PARTITIONS = 1
TOPIC_SETTINGS = {
    "retention.ms": str(RETENTION_DAYS * 24 * 3600 * 1000),
    "cleanup.policy": "delete",
    "max.message.bytes": str(MAX_RECORD_BYTES),
}
# Connect's own, of which the newest record of each key counts.
OFFSETS_SETTINGS = {"cleanup.policy": "compact"}
