"""Records of the quarantine with their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cdclake import naming
from cdclake.jobs.reader.duck import Reader


class RefusedRecord(NamedTuple):
    """Record in quarantine."""

    table: str
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    reason: str
    quarantined_us: int


def refused_records(reader: Reader, tables: Sequence[str], limit: int) -> list[RefusedRecord]:
    """Return the newest quarantined records of these tables, each place in Kafka once."""
    if naming.QUARANTINE not in reader.catalog.names():
        return []
    with reader.open([], plain=[naming.QUARANTINE]) as session:
        rows = session.execute(
            'SELECT "table", topic, "partition", "offset", "key", "value", reason,'
            f' epoch_us(quarantined_at) FROM {naming.QUARANTINE} WHERE list_contains(?, "table")'
            ' QUALIFY row_number() OVER (PARTITION BY topic, "partition", "offset"'
            " ORDER BY quarantined_at DESC) = 1"
            ' ORDER BY quarantined_at DESC, topic, "offset" DESC LIMIT ?',
            [list(tables), limit],
        ).fetchall()
    return [RefusedRecord(*row) for row in rows]
