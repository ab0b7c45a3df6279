"""Offsets that changelogs have reached in the topic that Kafka has now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cdclake import naming

# In Kafka a tombstone without a row follows each delete.
_FOLLOWING = f"{naming.OFFSET} + CASE {naming.OP} WHEN 'd' THEN 2 ELSE 1 END"


def reached_offsets(epoch: int) -> tuple[str, str]:
    """Return SQL, for Spark and DuckDB, of the offsets after the newest event.

    The first is that of events since `epoch`, the second that of earlier ones; NULL if there are
    none. Both are aggregates over the rows of one Kafka partition.
    """
    now = f"max(CASE WHEN {naming.EPOCH} >= {epoch} THEN {_FOLLOWING} END)"
    before = f"max(CASE WHEN {naming.EPOCH} < {epoch} THEN {_FOLLOWING} END)"
    return now, before


def in_present_topic(
    reached: Iterable[tuple[int, int | None, int | None]], ends: Mapping[int, int]
) -> dict[int, int]:
    """Return by partition the offset that changelogs of one topic have reached.

    `reached` has partition and `reached_offsets` of each changelog. Earlier events beyond the
    topic's `ends` are of a topic that was lost with its Kafka, and do not count.

    >>> in_present_topic([(0, 4, 1001), (1, None, 7)], {0: 9, 1: 7})
    {0: 4, 1: 7}
    """
    now: dict[int, int] = {}
    earlier: dict[int, int] = {}
    for partition, of_epoch, before in reached:
        now[partition] = max(of_epoch or 0, now.get(partition, 0))
        earlier[partition] = max(before or 0, earlier.get(partition, 0))
    return {
        partition: max(offset, earlier[partition])
        if earlier[partition] <= ends.get(partition, 0)
        else offset
        for partition, offset in now.items()
    }
