"""Records of the quarantine with their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cdclake import naming
from cdclake.jobs.reader.duck import Reader

# The places are chosen first, so that only their bytes are kept in memory.
_NEWEST = f"""
WITH newest AS (
  SELECT topic, "partition", "offset", max(quarantined_at) AS quarantined_at
  FROM {naming.QUARANTINE} WHERE list_contains(?, "table")
  GROUP BY topic, "partition", "offset"
  ORDER BY quarantined_at DESC, topic, "offset" DESC LIMIT ?
)
SELECT "table", topic, "partition", "offset", "key", "value", reason, epoch_us(quarantined_at)
FROM {naming.QUARANTINE} AS q SEMI JOIN newest AS n
  ON q.topic IS NOT DISTINCT FROM n.topic AND q."partition" IS NOT DISTINCT FROM n."partition"
  AND q."offset" IS NOT DISTINCT FROM n."offset" AND q.quarantined_at = n.quarantined_at
QUALIFY row_number() OVER (PARTITION BY topic, "partition", "offset") = 1
ORDER BY quarantined_at DESC, topic, "offset" DESC
"""


class RefusedRecord(NamedTuple):
    """Record in quarantine.

    A record that a redrive quarantined has no partition: its topic is the address of an object of
    failed records, and its offset a line there.
    """

    table: str
    topic: str
    partition: int | None
    offset: int | None
    key: bytes | None
    value: bytes | None
    reason: str
    quarantined_us: int

    @property
    def is_redriven(self) -> bool:
        """Check whether a redrive quarantined it, with the bytes that Firehose had kept."""
        return self.partition is None


def refused_records(reader: Reader, tables: Sequence[str], limit: int) -> list[RefusedRecord]:
    """Return the newest quarantined records of these tables, each place once."""
    if naming.QUARANTINE not in reader.catalog.names():
        return []
    with reader.open([], plain=[naming.QUARANTINE]) as session:
        rows = session.execute(_NEWEST, [list(tables), limit]).fetchall()
    return [RefusedRecord(*row) for row in rows]
