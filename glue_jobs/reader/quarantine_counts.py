"""Numbers of quarantined events of each table; events that Firehose appended twice count once."""

from __future__ import annotations

from cdclake import naming
from cdclake.iceberg.limit_condition import is_withheld
from cdclake.jobs.reader.duck import Reader


def quarantined_events(reader: Reader) -> dict[str, int]:
    """Count quarantined events by table."""
    return _counts(reader, "true")


def withheld_events(reader: Reader) -> dict[str, int]:
    """Count, by table, the quarantined events that a rule of the file had withheld."""
    return _counts(reader, is_withheld("reason"))


def _counts(reader: Reader, condition: str) -> dict[str, int]:
    with reader.open([], plain=[naming.QUARANTINE]) as session:
        rows = session.execute(
            'SELECT "table", count(DISTINCT (topic, "partition", "offset"))'
            f" FROM {naming.QUARANTINE} WHERE {condition} GROUP BY 1"
        ).fetchall()
    return {name: count for name, count in rows if name is not None}
