"""Metrics per table, in CloudWatch's embedded metric format: log lines that become metrics.

Off by default: CloudWatch bills each metric of each table. Source of the format: CloudWatch user
guide, "Specification: Embedded metric format".
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cdclake import metrics
from cdclake.jobs.control.last_verified import LastVerified
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.metrics import DEPLOYMENT, NAMESPACE, TABLE, Metric


def table_lines(
    deployment: str, progress: Progress, verified: Mapping[str, LastVerified], now: float
) -> Iterator[str]:
    """Yield a line of JSON for each table, with the metrics that are known of it."""
    for name, place in sorted(progress.tables.items()):
        values = dict(_values(place, progress.freshness_s(name, now), now))
        if name in verified:
            values[metrics.TABLE_VERIFIED_AGE] = now - verified[name].seconds
        yield json.dumps(_line(deployment, name, values, now))


def write_lines(lines: Iterable[str]) -> None:
    """Write the lines to standard output, which Glue sends to CloudWatch."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def _values(
    place: TableProgress, freshness_s: float | None, now: float
) -> Iterator[tuple[Metric, float]]:
    if freshness_s is not None:
        yield metrics.TABLE_FRESHNESS, freshness_s
    if (state_age_s := place.state_age_s(now)) is not None:
        yield metrics.TABLE_STATE_AGE, state_age_s
    yield metrics.TABLE_QUARANTINED, float(place.quarantined)
    yield metrics.TABLE_WITHHELD, float(place.withheld)
    yield metrics.TABLE_STOPPED, float(not place.is_streaming)


def _line(
    deployment: str, table: str, values: Mapping[Metric, float], now: float
) -> dict[str, Any]:
    named = [{"Name": metric.name, "Unit": metric.unit} for metric in values]
    told = {"Namespace": NAMESPACE, "Dimensions": [[DEPLOYMENT, TABLE]], "Metrics": named}
    return {
        "_aws": {"Timestamp": int(now * 1000), "CloudWatchMetrics": [told]},
        DEPLOYMENT: deployment,
        TABLE: table,
        **{metric.name: round(value, 3) for metric, value in values.items()},
    }
