"""Computation of `PendingFacts` by one Spark query; `facts_of` computes the same from Arrow."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StringType

from cdclake import naming
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.apply.pending_facts import PendingFacts

_IS_CHANGE = f"{naming.OP} <> 't'"
_FACTS = {
    "events": "count(1)",
    "truncates": f"coalesce(bool_or({naming.OP} = 't'), false)",
    "carried_key_changes": (
        f"coalesce(bool_or({naming.OP} = 'c' AND {naming.UNAVAILABLE} IS NOT NULL), false)"
    ),
    "unavailable": f"flatten(collect_set({naming.UNAVAILABLE}))",
    "lowest": f"coalesce(min({naming.POSITION}) FILTER (WHERE {_IS_CHANGE}), '')",
    "highest": f"coalesce(max({naming.POSITION}) FILTER (WHERE {_IS_CHANGE}), '')",
    "lowest_lsn": f"min({naming.LSN})",
    "lowest_deleted_lsn": f"min(CASE WHEN {naming.OP} = 'd' THEN {naming.LSN} END)",
}


def facts_of_rows(changes: DataFrame) -> PendingFacts:
    """Compute the facts about changelog rows."""
    columns = {**_FACTS, "text_bytes": _text_bytes(changes)}
    row = changes.selectExpr(*columns.values()).collect()[0]
    facts: dict[str, Any] = dict(zip(columns, row, strict=True))
    facts["unavailable"] = tuple(sorted(set(facts["unavailable"])))
    return PendingFacts(**facts)


def _text_bytes(changes: DataFrame) -> str:
    sizes = ", ".join(
        f"octet_length({SPARK.name(field.name)})"
        for field in changes.schema.fields
        if isinstance(field.dataType, StringType | BinaryType)
    )
    of_row = f"aggregate(array({sizes}), 0L, (sum, size) -> sum + coalesce(size, 0))"
    return f"coalesce(sum({of_row}), 0)"
