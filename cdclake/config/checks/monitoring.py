"""Checks of alarm thresholds that would always be exceeded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdclake.config.document import Document
from cdclake.config.monitoring_model import Monitoring
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem
from cdclake.debezium.connector import HEARTBEAT_SECONDS

_LOCATION = ("aws", "monitoring", "freshness_minutes")


def check_freshness(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse a freshness threshold that is shorter than the stream's triggers allow."""
    del tables
    trigger = document.get("stream", "trigger_seconds")
    declared = document.get(*_LOCATION)
    minutes = Monitoring().freshness_minutes if declared is None else declared
    if document.get("stream", "mode") == "scheduled":  # has no triggers
        return
    if type(trigger) is not int or type(minutes) is not int:
        return
    # A change committed just after a batch has started waits until the next batch has ended.
    needed = 2 * trigger + HEARTBEAT_SECONDS
    if minutes * 60 < needed:
        yield document.problem(
            ("stream", "trigger_seconds") if declared is None else _LOCATION,
            f"a batch every {trigger} s cannot keep the lake within {minutes} min of the source:"
            " the alarm would never clear",
            f"write `aws: monitoring: freshness_minutes: {-(-needed // 60)}` or more, or reduce"
            " `trigger_seconds`",
        )
