"""Alarms of the scheduled jobs.

An alarm of failed runs stays on for an hour, or for a day where the next run may be later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import TreatMissingData

from cdclake import metrics, naming
from cdclake.config.deployment import Deployment
from cdclake.plan import Plan
from cdclake.schedule_times import is_hourly, longest_days
from cdclake.stacks.constructs.alarm import LESS, AlarmSpec
from cdclake.stacks.constructs.deployment_metrics import (
    DAY,
    HOUR,
    DeploymentMetrics,
    filled,
    waiting_messages,
)

_MAX_WINDOW_DAYS = 7  # of CloudWatch, for periods of an hour or more


def failure_window(schedules: Iterable[str]) -> tuple[Duration, str]:
    """Return how long a failed run of these schedules is an alarm, and the words for it.

    A day if more than an hour may be between two runs: until the next one nothing is repaired.
    """
    return (HOUR, "an hour") if all(map(is_hourly, schedules)) else (DAY, "a day")


def watches_of_jobs(
    deployment: Deployment, known: DeploymentMetrics, failed_queue: str
) -> Iterator[AlarmSpec]:
    """Yield the jobs' alarms; `failed_queue` is the name of the schedules' dead-letter queue."""
    plan, most = deployment.plan, deployment.aws.monitoring.small_files
    yield AlarmSpec(
        name="schedules",
        description="A scheduled start of a job or of the stream keeper failed. Its message is"
        " in the dead-letter queue.",
        metric=waiting_messages(failed_queue),
        threshold=0,
    )
    if any(table.apply == "scheduled" for table in plan.tables):
        yield _of_failures(
            "apply-failed",
            known,
            naming.APPLY_JOB,
            [plan.schedules["apply"]],
            "a state table could not be updated from its changelog. Views stay correct but become"
            " slower.",
        )
    yield AlarmSpec(
        name="maintain-failed",
        description="Within a day a table could not be maintained, or a maintenance run failed.",
        metric=known.failures(naming.MAINTAIN_JOB, DAY),
        threshold=0,
    )
    yield from _of_results(plan, known)
    if "verify" in plan.schedules:
        yield from _of_verification(deployment, known)
    yield AlarmSpec(
        name="small-files",
        description=f"After maintenance a table has more than {most} files beyond those it needs:"
        " compaction, by maintain_tables or by Glue, does not keep up.",
        metric=known.own(metrics.SMALL_FILES, "Maximum", job=naming.MAINTAIN_JOB, period=DAY),
        threshold=most,
    )


def _of_results(plan: Plan, known: DeploymentMetrics) -> Iterator[AlarmSpec]:
    """Yield the alarms of polled and derived tables, copies and quality rules, if there are any."""
    jobs = (
        ("poll-failed", naming.POLL_JOB, list(plan.polls),
         "a polled table could not be read, or its rows could not be stored."),
        ("derived-failed", naming.REFRESH_JOB, [table.schedule for table in plan.derived],
         "a derived table could not be refreshed: it keeps the rows of its last refresh."),
        ("publish-failed", naming.PUBLISH_JOB, [copy.schedule for copy in plan.copies],
         "a Hudi copy could not be updated: it keeps the rows of its last publication."),
    )  # fmt: skip
    for name, job, schedules, failure in jobs:
        if schedules:
            yield _of_failures(name, known, job, schedules, failure)
    if plan.is_checked:
        yield AlarmSpec(
            name="checks-failed",
            description="Within a day a table broke a quality rule, or could not be checked.",
            metric=known.failures(naming.CHECK_JOB, DAY),
            threshold=0,
        )


def _of_failures(
    name: str, known: DeploymentMetrics, job: str, schedules: Iterable[str], failure: str
) -> AlarmSpec:
    period, within = failure_window(schedules)
    return AlarmSpec(
        name=name,
        description=f"Within {within} {failure}",
        metric=known.failures(job, period),
        threshold=0,
    )


def _of_verification(deployment: Deployment, known: DeploymentMetrics) -> Iterator[AlarmSpec]:
    """Yield the alarms of the scheduled comparison: a difference, and one that did not run."""
    yield AlarmSpec(
        name="verify-failed",
        description="Within a day a table of the lake differed from the source, or the comparison"
        " failed.",
        metric=known.failures(naming.VERIFY_JOB, DAY),
        threshold=0,
    )
    interval = longest_days(deployment.plan.schedules["verify"])
    if interval > _MAX_WINDOW_DAYS:  # an alarm would be on between two runs
        return
    days = min(interval + 1, _MAX_WINDOW_DAYS)
    yield AlarmSpec(
        name="verify-overdue",
        description=f"No comparison with the source has ended for {days} days.",
        metric=filled(
            known.own(metrics.VERIFIED_TABLES, "SampleCount", job=naming.VERIFY_JOB, period=DAY), 0
        ),
        threshold=1,
        beyond=LESS,
        periods=days,
        missing=TreatMissingData.BREACHING,
    )
