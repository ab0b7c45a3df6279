"""Arrival of Kafka's records in the changelogs that Firehose writes."""

from __future__ import annotations

from cdclake import naming

# Longest delivery of a stream that reads Kafka; `validate` refuses settings that exceed it.
DELIVERY_S = 3 * 3600.0

# SQL, for Spark and DuckDB, of the offset after an event, and after the newest one of a partition.
# In Kafka a tombstone without a row follows each delete.
OFFSET_AFTER = f"({naming.OFFSET} + CASE {naming.OP} WHEN 'd' THEN 2 ELSE 1 END)"
NEXT_OFFSET = f"max{OFFSET_AFTER}"


def in_topic_since(epoch: int) -> str:
    """Return SQL, for Spark and DuckDB, that selects events of the topic that Kafka has now.

    Events before `epoch` may be of a topic that was lost: its offsets say nothing about this one.
    """
    return f"{naming.OFFSET} IS NOT NULL AND {naming.EPOCH} >= {epoch}"
