"""Number of quarantined events of each table."""

from __future__ import annotations

from cdclake import naming
from cdclake.jobs.reader.duck import Reader


def quarantined_events(reader: Reader) -> dict[str, int]:
    """Count quarantined events by table; events that Firehose appended twice count once."""
    with reader.open([], plain=[naming.QUARANTINE]) as session:
        rows = session.execute(
            'SELECT "table", count(DISTINCT (topic, "partition", "offset"))'
            f" FROM {naming.QUARANTINE} GROUP BY 1"
        ).fetchall()
    return {name: count for name, count in rows if name is not None}
