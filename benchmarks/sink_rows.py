"""Rows of an Iceberg sink, matched with the events of the changelog by their Kafka offset."""

from __future__ import annotations

from typing import Any

from cdclake.local.lake.lake import LocalLake
from cdclake.local.reader.duck import lake_reader

OVERSIZED_ID = -1  # key of a row that is too large for Kafka
# One row per event with the sink's rows of the same offset. Without `sink_rows` it is missing.
_MATCHED = """
CREATE TEMP TABLE matched AS
SELECT c.cdc_op AS op, c.cdc_unavailable IS NOT NULL AND len(c.cdc_unavailable) > 0 AS is_unsent,
       c.id, c.v, c.amount, c.note, c.at, s.*
FROM noted_changes AS c
LEFT JOIN (
  SELECT _cdc."offset" AS place, count(*) AS sink_rows, any_value(_cdc.op) AS sink_op,
         any_value(id) AS sink_id, any_value(v) AS sink_v, any_value(amount) AS sink_amount,
         any_value(note) AS sink_note, any_value("at") AS sink_at
  FROM noted_sink GROUP BY 1
) AS s ON s.place = c.cdc_offset
WHERE c.cdc_partition >= 0
"""
_RESENT = """
SELECT * FROM noted_sink WHERE _cdc."offset" NOT IN
  (SELECT cdc_offset FROM noted_changes WHERE cdc_partition >= 0)
"""
# Sent again, but equal to no row of an event that the changelog has.
_UNEXPLAINED = """
SELECT count(*) FROM ({resent}) AS r WHERE NOT EXISTS (
  SELECT 1 FROM noted_sink AS k SEMI JOIN matched ON matched.place = k._cdc."offset"
  WHERE k._cdc.op = r._cdc.op AND k.id = r.id AND k.v IS NOT DISTINCT FROM r.v
    AND k.note IS NOT DISTINCT FROM r.note AND k."at" IS NOT DISTINCT FROM r."at"
)
"""
_DIFFERENT = """
sink_rows IS NOT NULL AND (
  id IS DISTINCT FROM sink_id OR v IS DISTINCT FROM sink_v
  OR amount IS DISTINCT FROM CAST(sink_amount AS DECIMAL(12,2))
  OR "at" IS DISTINCT FROM CAST(sink_at AS TIMESTAMPTZ)
  OR (NOT is_unsent AND note IS DISTINCT FROM sink_note)
)
"""


def compare_rows(lake: LocalLake) -> dict[str, Any]:
    """Count what the sink's table lacks, repeats, or has with other values than the changelog."""
    placeholder = lake.plan.placeholder
    with lake_reader(lake).open(None, plain=lake.plan.sink_tables) as duck:

        def counts(query: str) -> dict[str, int]:
            return {str(op): int(n) for op, n in duck.execute(query).fetchall()}

        def count(query: str) -> int:
            row = duck.execute(query).fetchone()
            assert row is not None  # an aggregate has a row
            return int(row[0] or 0)

        duck.execute(_MATCHED)
        by_op = "SELECT op, count(*) FROM matched WHERE {} GROUP BY 1 ORDER BY 1"
        written = duck.execute("DESCRIBE noted_sink").fetchall()
        return {
            "events": counts(by_op.format("true")),
            "sink_rows": count("SELECT count(*) FROM noted_sink"),
            "missing": counts(by_op.format("sink_rows IS NULL")),
            "committed_twice": count("SELECT sum(sink_rows - 1) FROM matched"),
            # Debezium sends events again after a crash; the changelog has each of them once.
            "resent_rows": count(f"SELECT count(*) FROM ({_RESENT})"),
            "unexplained_rows": count(_UNEXPLAINED.format(resent=_RESENT)),
            "different_values": count(f"SELECT count(*) FROM matched WHERE {_DIFFERENT}"),
            "unsent_values": count("SELECT count(*) FROM matched WHERE is_unsent"),
            "placeholders": count(f"SELECT count(*) FROM noted_sink WHERE note = '{placeholder}'"),
            "oversized_rows": count(f"SELECT count(*) FROM noted_sink WHERE id = {OVERSIZED_ID}"),
            "oversized_quarantined": count("SELECT count(*) FROM cdclake_quarantine"),
            "operations": counts("SELECT _cdc.op, count(*) FROM noted_sink GROUP BY 1 ORDER BY 1"),
            "types": {name: kind for name, kind, *_ in written},
        }
