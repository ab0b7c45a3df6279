"""SQL conditions of a value that breaks a quality rule, and of an event that a rule withholds."""

from __future__ import annotations

from cdclake.debezium.refusals import BROKEN_RULE
from cdclake.iceberg.dialect import SPARK
from cdclake.quality_rule import ValueLimit


def broken_limit(limit: ValueLimit, value: str, state: str) -> str:
    """Return when `value`, an expression of the state's type `state`, breaks the limit.

    `debezium.row_rules` decides the same for the values of events.
    """
    if limit.test == "not_null":
        return f"{value} IS NULL"
    if limit.test == "in":
        listed = ", ".join(_literal(text, state) for text in limit.allowed)
        return f"NOT ({value} IN ({listed}))"
    beyond = (("<", limit.low), (">", limit.high))
    return " OR ".join(
        f"{value} {sign} {_literal(text, state)}" for sign, text in beyond if text is not None
    )


def is_withheld(reason: str) -> str:
    """Return when `reason`, a refusal's reason or NULL, is a rule of the file."""
    return f"coalesce({reason} LIKE '{BROKEN_RULE}%', false)"


def _literal(text: str, state: str) -> str:
    spelled = SPARK.text(text)
    return spelled if state == "string" else f"CAST({spelled} AS {state})"
