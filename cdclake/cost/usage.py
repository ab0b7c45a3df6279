"""Quantities that are billed by use, from a declaration: job runs, requests and data.

The figures per event and batch are those of the committed benchmarks, on the machine that
`docs/benchmarks.md` names; Glue's workers differ from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cdclake.config.deployment import Deployment
from cdclake.config.jobs_model import Workers
from cdclake.cost.meters import DPUS, HOURS, Quantity
from cdclake.errors import InputError
from cdclake.schedule_times import runs_a_day

DAYS = HOURS / 24
_MAX_LOAD = 1e9  # gigabytes a day, or events a second; the totals stay finite
EVENT_BYTES = 1000  # assumed JSON size of an event if only --events-s is given
# benchmarks/results, N1: CPU seconds of an event through changelog and state, on one core.
_CPU_S_PER_EVENT = 17.0e-6
# N7: requests of a table in a batch for both commits. S3's writes are files, manifests, metadata.
_WRITES, _READS, _CATALOG = 10, 4, 8
_FREE_CATALOG = 1e6  # requests a month
_PUBLISHED_METRICS = 26  # by the stream, the jobs and the keepers
_TABLE_METRICS = 6  # by the stream for each of its tables, with `table_metrics`
START_MINUTES = 2.0  # until a Glue job works; it is billed from its start
_MAINTENANCE_MINUTES = 10.0  # of a run, for a small lake
IDLE_WORKERS = 2  # an autoscaled job's, when little flows: driver and one executor
_CORES = {"G.025X": 2, "G.1X": 4, "G.2X": 8, "G.4X": 16, "G.8X": 32}
_STORED_OF_EVENT = 0.15  # of its JSON, in Parquet


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Load of a deployment: events and bytes of its changes."""

    events_s: float
    gb_day: float

    @classmethod
    def of(cls, gb_day: float | None, events_s: float | None) -> Load:
        """Return the load; what is not given follows from the other, at 1 KB an event.

        Raises InputError for a number that is not finite, or larger than any load.
        """
        for option, given in (("--gb-day", gb_day), ("--events-s", events_s)):
            if given is not None and not 0 <= given <= _MAX_LOAD:
                raise InputError(f"invalid {option} {given:g}", "write a number from 0 to 1e9")
        if gb_day is None:
            events = events_s or 0.0
            return cls(events_s=events, gb_day=events * EVENT_BYTES * 86_400 / 1e9)
        events = gb_day * 1e9 / EVENT_BYTES / 86_400 if events_s is None else events_s
        return cls(events_s=events, gb_day=gb_day)


def usage_quantities(deployment: Deployment, load: Load) -> Iterator[Quantity]:
    """Yield what a month of this load is billed for by use."""
    if deployment.plan.tables:
        yield from _jobs(deployment, load)
        yield from _requests(deployment, load)
    yield from _data(deployment, load)


def _jobs(deployment: Deployment, load: Load) -> Iterator[Quantity]:
    plan, jobs = deployment.plan, deployment.aws.jobs
    core_hours_day = load.events_s * 86_400 * _CPU_S_PER_EVENT / 3600
    if deployment.aws.stream == "on":
        yield _stream(deployment, core_hours_day)
    batch = jobs.batch
    minutes = _MAINTENANCE_MINUTES * runs_a_day(plan.schedules["maintain"])
    yield _runs("maintain_tables", batch, minutes)
    if any(table.apply == "scheduled" for table in plan.tables):
        runs = runs_a_day(plan.schedules["apply"])
        yield _runs("apply_changes", batch, runs * START_MINUTES + core_hours_day * 60)
    if "verify" in plan.schedules:
        runs = runs_a_day(plan.schedules["verify"])
        yield _runs("verify_tables", batch, 2 * START_MINUTES * runs)
    if plan.is_checked:
        runs = runs_a_day(plan.schedules["checks"])
        yield _runs("check_tables", batch, 2 * START_MINUTES * runs)
    if plan.derived:
        runs = sum(runs_a_day(table.schedule) for table in plan.derived)
        yield _runs("refresh_derived", batch, 2 * START_MINUTES * runs)
    if plan.polled:
        runs = sum(runs_a_day(every) for every in plan.polls)
        yield _runs("poll_tables", batch, 2 * START_MINUTES * runs)
    if plan.copies:
        runs = sum(runs_a_day(copy.schedule) for copy in plan.copies)
        yield _runs("publish_hudi", batch, 2 * START_MINUTES * runs)


def _stream(deployment: Deployment, core_hours_day: float) -> Quantity:
    size, plan = deployment.aws.jobs.stream, deployment.plan
    if plan.mode == "scheduled":
        runs = runs_a_day(plan.schedules["apply"])
        return _runs("stream_changes", size, runs * START_MINUTES + core_hours_day * 60)
    needed = 1 + -(-core_hours_day // (24 * _CORES[size.worker]))
    workers = size.workers
    if size.autoscaling:
        workers = min(max(int(needed), IDLE_WORKERS), size.workers)
    return Quantity(
        meter="glue.dpu",
        quantity=workers * DPUS[size.worker] * HOURS,
        unit="DPU-h",
        detail=f"stream_changes, always on: {workers} workers {size.worker}",
    )


def _runs(job: str, size: Workers, minutes_a_day: float) -> Quantity:
    workers = IDLE_WORKERS if size.autoscaling else size.workers
    return Quantity(
        meter="glue.dpu",
        quantity=workers * DPUS[size.worker] * minutes_a_day * DAYS / 60,
        unit="DPU-h",
        detail=f"{job}: {minutes_a_day:.0f} minutes a day, {workers} workers {size.worker}",
    )


def _requests(deployment: Deployment, load: Load) -> Iterator[Quantity]:
    plan = deployment.plan
    batches = 86_400 / plan.trigger_seconds
    if plan.mode == "scheduled":
        batches = runs_a_day(plan.schedules["apply"])
    touched = min(len(plan.tables), load.events_s * 86_400 / batches)
    commits = batches * touched * DAYS
    detail = f"{batches:.0f} batches a day, {touched:.1f} of {len(plan.tables)} tables in each"
    yield Quantity(meter="s3.write", quantity=commits * _WRITES, unit="requests", detail=detail)
    yield Quantity(meter="s3.read", quantity=commits * _READS, unit="requests", detail=detail)
    catalog = max(commits * _CATALOG - _FREE_CATALOG, 0)
    yield Quantity(meter="glue.request", quantity=catalog, unit="requests", detail=detail)
    yield _metrics(deployment)


def _metrics(deployment: Deployment) -> Quantity:
    published, detail = _PUBLISHED_METRICS, "metrics of the jobs"
    if deployment.aws.monitoring.table_metrics:
        streamed = sum(table.delivery == "stream" for table in deployment.plan.tables)
        published, detail = published + _TABLE_METRICS * streamed, f"{detail} and the tables"
    return Quantity(meter="cloudwatch.metric", quantity=published, unit="metrics", detail=detail)


def _data(deployment: Deployment, load: Load) -> Iterator[Quantity]:
    month = load.gb_day * DAYS
    detail = f"{load.gb_day:g} GB of events a day"
    if month == 0:
        return
    days = min(deployment.plan.history_days, 365)
    yield Quantity(
        meter="s3.storage",
        quantity=load.gb_day * days * _STORED_OF_EVENT,
        unit="GB",
        detail=f"{days} days of changelog in Parquet",
    )
    if deployment.delivers:
        yield Quantity(meter="firehose.msk", quantity=month, unit="GB", detail=detail)
    if deployment.plan.put_streams:
        yield Quantity(meter="firehose.direct_put", quantity=month, unit="GB", detail=detail)
    if deployment.aws.kafka.create is not None and deployment.aws.kafka.create.is_express:
        yield Quantity(meter="msk.express.ingest", quantity=month, unit="GB", detail=detail)
