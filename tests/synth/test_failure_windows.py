"""An alarm of failed runs stays on until the next run may have repaired them, at most for a day."""

from __future__ import annotations

from pathlib import Path

import pytest
from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import IMetric

from cdclake.config.deployment import load_deployment
from cdclake.stacks.constructs.alarms import watches
from tests.synth.deployments import CHECKED, DERIVED, OPTIMIZED, PIPELINE, POLLED, PUBLISHED

OF_FAILURES = ("poll-failed", "derived-failed", "publish-failed", "apply-failed", "stream-failed")
ALL_JOBS = PIPELINE + CHECKED + PUBLISHED + POLLED + OPTIMIZED + DERIVED
SCHEDULED = ALL_JOBS + "stream: {mode: scheduled}\nschedules: {apply: rate(30 minutes)}\n"


def seconds(metric: IMetric) -> float:
    """Return the period of a metric or expression."""
    config = metric.to_metric_config()
    if config.metric_stat is not None:
        return config.metric_stat.period.to_seconds()
    assert config.math_expression is not None
    return config.math_expression.period


@pytest.mark.parametrize(
    ("schedule", "period", "within"),
    [
        ("rate(1 hour)", Duration.hours(1), "Within an hour"),
        ("cron(0 2 * * ? *)", Duration.days(1), "Within a day"),
    ],
)
def test_a_failed_run_is_an_alarm_for_a_day_if_the_next_may_be_later(
    schedule: str, period: Duration, within: str, tmp_path: Path
) -> None:
    """One such schedule of a job suffices: each job but `apply_changes` has another one."""
    file = SCHEDULED.replace("cron(0 4 * * ? *)", schedule)
    path = tmp_path / "shop.yaml"
    path.write_text(file.replace("rate(30 minutes)", f"{schedule!r}"))
    specs = watches(load_deployment(path), failed_queue="failed", functions=())
    found = {each.name: each for each in specs}
    for name in OF_FAILURES:
        assert found[name].description.startswith(within), name
        assert seconds(found[name].metric) == period.to_seconds(), name
