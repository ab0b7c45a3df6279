"""Totals of figures that `status` has by table, but that belong to the table's topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def total_of_topics(tables: Iterable[Mapping[str, Any]], figure: str) -> int | None:
    """Return the sum of a figure over the tables' topics; None if it is unknown of all.

    Tables of a Firehose `domain:` share a topic, and each of them has the topic's figure.

    >>> total_of_topics([{"topic": "shop", "lag": 3}, {"topic": "shop", "lag": 3}], "lag")
    3
    """
    known = {t["topic"]: t[figure] for t in tables if t[figure] is not None}
    return sum(known.values()) if known else None
