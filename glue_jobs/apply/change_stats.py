"""Facts about changes that Spark has: those of `pending_facts`, by one query."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from cdclake import naming
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
    row = changes.selectExpr(*_FACTS.values()).collect()[0]
    facts: dict[str, Any] = dict(zip(_FACTS, row, strict=True))
    facts["unavailable"] = tuple(sorted(set(facts["unavailable"])))
    return PendingFacts(**facts)
