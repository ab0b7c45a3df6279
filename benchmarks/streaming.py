"""P6: from PostgreSQL to `_current`: the rate that one job holds, freshness, and CPU by job."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.comparison import Arena
from benchmarks.contenders import OURS
from benchmarks.lake_fixture import ages_between, await_arrival, difference, source_of, stream
from benchmarks.metering import Meter, cpu_seconds, metered
from benchmarks.results import Bound, Measure, Run, worst_subject
from benchmarks.sizes import Size, Streaming
from benchmarks.source_fixture import create_tables
from benchmarks.storage import in_folder
from benchmarks.traffic import Traffic, plan_of_many
from cdclake.jobs.runtime.source import write_marker
from cdclake.local import shutdown
from cdclake.local.demo.freshness import freshness
from cdclake.local.lake import stack
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.spark_jobs import STREAM
from cdclake.local.lake.topics import MarkerReader
from cdclake.local.operations_backend import local_operations

KAFKA_ALONE, TRIGGER, OWN_JOBS = "debezium_to_kafka", "trigger", "a_job_for_each"
TRIGGER_SECONDS = 10
_RATE = "seconds for 100,000 changes at the rate that is held"
_FRESHNESS = "freshness p95 at half that rate"
_CPU = "CPU seconds of the jobs of 5 tables"
_TARGETS = {
    _RATE: {},
    _FRESHNESS: {TRIGGER: Bound("<=", 2)},
    _CPU: {OWN_JOBS: Bound("<=", 0.5)},
}
_OPENING = 10_000  # rows that a table has before anything is measured
_SHARED = 5  # tables of the job whose CPU is measured
_FASTER, _SLOWER = 1.5, 0.9
_KEPT_UP = 0.95  # of the rate that was asked for; below it the source was the limit


def measure_streaming(size: Size, work: Path) -> Measure:
    """P6; the figures on top are of the subject with a target in which ours does worst."""
    arena = Arena(work, in_folder)
    found = []
    for part in ("rate", "cpu"):
        with arena.place(f"streaming-{part}") as place:
            found += place.ask("benchmarks.streaming", {"part": part, **asdict(size.streaming)})
    runs = [Run(**run) for run in found]
    return worst_subject(runs, OURS, lambda subject: _TARGETS[subject])


def take(*, warehouse: str, scratch: str, part: str, **asked: Any) -> list[Mapping[str, Any]]:
    """The runs of a part, as `Run` takes them."""
    given, folder = Streaming(**asked), Path(warehouse)
    return _rate_runs(given, folder) if part == "rate" else _cpu_runs(given, folder)


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a rate: changes a second, and the seconds that the lag grew in each second."""

    written: float
    growth: float
    held: bool

    @property
    def arrived(self) -> float:
        """Changes a second that readers came to see: fewer than were written by what lag grew."""
        return self.written / (1 + max(0.0, self.growth))


@dataclass(frozen=True, slots=True)
class Stand:
    """A lake that streams tables, and who writes to them."""

    lake: LocalLake
    traffic: Traffic

    def trial(self, rate: float, seconds: float) -> Trial:
        """So many changes a second for so long; held if the age of what arrives does not grow."""
        begun = time.time()
        written = self.traffic.hold(rate, seconds)
        ended = time.time()
        await_arrival(self.lake)
        fifth = (ended - begun) / 5
        early = freshness(ages_between(self.lake, begun + fifth, begun + 2 * fifth)).p50_ms
        late = freshness(ages_between(self.lake, ended - fifth, ended)).p50_ms
        if early is None or late is None:
            raise RuntimeError("nothing has arrived of what was written")
        held = written >= _KEPT_UP * rate and late <= early + 500 * TRIGGER_SECONDS
        growth = (late - early) / 1000 / (3 * fifth)
        return Trial(written=written, growth=growth, held=held)


def _rate_runs(given: Streaming, folder: Path) -> list[Mapping[str, Any]]:
    plan = plan_of_many(given.tables, TRIGGER_SECONDS)
    with source_of(folder / "home", plan) as (home, dsn):
        create_tables(dsn, plan.tables)
        traffic = Traffic(dsn, plan.tables)
        traffic.open(_OPENING)
        lake = stream(home, plan)
        await_arrival(lake)
        shutdown.pause(home, lake)
        alone = [_kafka_alone(lake, traffic, given.backlog) for _ in range(3)]
        local_operations(lake).resume(lake.plan.tables)
        await_arrival(lake)
        stand = Stand(lake, traffic)
        rate = _held_rate(stand, given)
        with metered() as meter:
            started = time.time()
            traffic.hold(rate / 2, given.hold_seconds)
            ended = time.time()
        await_arrival(lake)
        age = freshness(ages_between(lake, started, ended)).p95_ms
        wrong = difference(lake)
    figures = {"changes_per_second": round(rate), "seconds": 100_000 / rate}
    about = {"tables": given.tables}
    return [
        _run(OURS, _RATE, [{**meter.figures(), **figures}], about, wrong),
        _run(KAFKA_ALONE, _RATE, alone, about, wrong),
        _run(OURS, _FRESHNESS, [{**meter.figures(), "seconds": (age or 0) / 1000}], about, wrong),
        _run(TRIGGER, _FRESHNESS, [{**meter.figures(), "seconds": TRIGGER_SECONDS}], about, wrong),
    ]


def _kafka_alone(lake: LocalLake, traffic: Traffic, changes: int) -> Mapping[str, Any]:
    """Debezium's way through changes that wait for it, with nobody at work beside it."""
    connector, marker = ConnectorClient(lake.endpoints.connect, lake.plan), os.urandom(8).hex()
    connector.stop()
    traffic.write(changes)
    markers = MarkerReader(lake.kafka, lake.plan)
    write_marker(lake.dsn, marker)
    try:
        with metered() as meter:
            connector.resume()
            while markers.find(marker) is None:
                pass  # `find` waits by itself
    finally:
        markers.close()
    figures = {"changes_per_second": round(changes / meter.seconds)}
    return {**meter.figures(), **figures, "seconds": meter.seconds / changes * 100_000}


def _held_rate(stand: Stand, given: Streaming) -> float:
    """The greatest rate that was held for the whole time; found by shorter tries.

    RuntimeError if not even a tenth of the first one is held.
    """
    rate = given.first_rate
    while stand.trial(rate * _FASTER, given.probe_seconds).held:
        rate *= _FASTER
    while not (trial := stand.trial(rate, given.hold_seconds)).held:
        rate = min(_SLOWER * rate, trial.arrived)
        if rate < given.first_rate / 10:
            raise RuntimeError(f"no rate was held; the last try was {rate:.0f} changes a second")
    return rate


def _cpu_runs(given: Streaming, folder: Path) -> list[Mapping[str, Any]]:
    """One job of some tables; and one of one, which as many others would each cost again."""
    shared, wrong = _cpu_of(_SHARED, given, folder / "shared")
    single, also_wrong = _cpu_of(1, given, folder / "single")
    own = [{**figures, "seconds": figures["seconds"] * _SHARED} for figures in single]
    about = {"tables": _SHARED}
    return [
        _run(OURS, _CPU, shared, about, wrong),
        _run(OWN_JOBS, _CPU, own, about, also_wrong),
    ]


def _cpu_of(
    tables: int, given: Streaming, folder: Path
) -> tuple[list[Mapping[str, Any]], str | None]:
    """CPU seconds of a job over stretches of time; how its lake was wrong in the end."""
    plan = plan_of_many(tables, TRIGGER_SECONDS)
    with source_of(folder, plan) as (home, dsn):
        create_tables(dsn, plan.tables)
        traffic = Traffic(dsn, plan.tables)
        traffic.open(_OPENING)
        lake = stream(home, plan)
        [job] = [part["pid"] for part in stack.components(home) if part["name"] == STREAM]
        rate = given.first_rate / 10 * tables
        traffic.hold(rate, given.probe_seconds)  # until Java has compiled most of it
        figures = []
        for _ in range(3):
            before = cpu_seconds(job)
            with metered() as meter:
                traffic.hold(rate, given.probe_seconds)
            figures.append(_of_the_job(meter, cpu_seconds(job) - before))
        await_arrival(lake)
        return figures, difference(lake)


def _of_the_job(meter: Meter, spent: float) -> Mapping[str, Any]:
    """Its CPU seconds as the figure that is compared."""
    return {**meter.figures(), "seconds": spent, "cpu_seconds": spent}


def _run(
    contender: str,
    subject: str,
    figures: Sequence[Mapping[str, Any]],
    about: Mapping[str, Any],
    wrong: str | None,
) -> Mapping[str, Any]:
    """As `Run` takes it."""
    whole = {"subject": subject, **about}
    return {"contender": contender, "subject": whole, "wrong": wrong, "figures": figures}
