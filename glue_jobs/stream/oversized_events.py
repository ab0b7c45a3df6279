"""Detection of the connector's markers for events that were too large for Kafka."""

from __future__ import annotations

from pyspark.sql import functions as F

from cdclake.debezium.refusals import OVERSIZED_RECORD
from cdclake.jobs.stream.batch_stats import REFUSED
from cdclake.jobs.stream.decode import REFUSAL
from cdclake.jobs.stream.reader import Decoded


def oversized_reason(decoded: Decoded) -> str | None:
    """Return the reason of one such event, with its table and key; None if there is none."""
    if not decoded.show(REFUSED):
        return None
    found = decoded.rows.where(F.col(REFUSAL).startswith(OVERSIZED_RECORD))
    rows = found.select(F.max(REFUSAL)).collect()
    return rows[0][0] if rows else None
