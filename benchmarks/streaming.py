"""P6: from PostgreSQL to `_current`: the rate that one job holds, and freshness at half of it.

The rate is that of a lake with the trigger that a file has by default. Freshness is measured in two
others with a shorter one: S3 and Glue are near, and some way off.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.comparison import Arena
from benchmarks.contenders import OURS
from benchmarks.lake_fixture import (
    ages_between,
    await_arrival,
    both_compilers,
    counted_aws,
    cpu_of_parts,
    difference,
    source_of,
    stream,
)
from benchmarks.many_tables import plan_of_many
from benchmarks.metering import metered
from benchmarks.results import Bound, Measure, Run, worst_subject
from benchmarks.sizes import Size, Streaming
from benchmarks.source_fixture import create_tables
from benchmarks.steps import Steps
from benchmarks.storage import in_folder
from benchmarks.traffic import Traffic
from cdclake.jobs.runtime.source import write_marker
from cdclake.local import shutdown
from cdclake.local.demo.freshness import freshness
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.topics import MarkerReader
from cdclake.local.operations_backend import local_operations
from cdclake.local.process.home import Home

KAFKA_ALONE, GOAL = "debezium_to_kafka", "goal"
TRIGGER_SECONDS, SHORT_TRIGGER_SECONDS = 10, 2
_RATE = "seconds for 100,000 changes at the rate that is held"
_FRESHNESS, _FAR = "freshness p95 at half that rate", "the same with S3 and Glue far away"
_GOALS = {_RATE: 10.0, _FRESHNESS: 6.0, _FAR: 15.0}  # seconds
_OPENING = 10_000  # rows that a table has before anything is measured
_FASTER, _SLOWER = 1.25, 0.9
KEPT_UP = 0.95  # of the rate that was asked for; below it the source was the limit


def measure_streaming(size: Size, work: Path, steps: Steps) -> Measure:
    """P6, a step for each subject; the figures on top are those of our worst subject."""
    arena, found = Arena(work, in_folder), []
    rate = 0.0  # still to be found

    def taken(subject: str) -> Any:
        with arena.place("streaming") as place:
            asked = {"subject": subject, "rate": rate, **asdict(size.streaming)}
            return place.ask("benchmarks.streaming", asked)

    for subject in _GOALS:
        found += steps.take(subject, partial(taken, subject))
        rate = found[0]["figures"][0]["changes_per_second"]
    return worst_subject([Run(**run) for run in found], OURS, lambda _: {GOAL: Bound("<=", 1)})


def take(
    *, warehouse: str, scratch: str, subject: str, rate: float, **asked: Any
) -> list[Mapping[str, Any]]:
    """The runs of a subject, as `Run` takes them; freshness is that at half the rate."""
    given, folder = Streaming(**asked), Path(warehouse)
    if subject == _RATE:
        return _rate_runs(given, folder)
    with counted_aws(is_far=True) if subject == _FAR else nullcontext():
        return _freshness_runs(given, folder, subject, rate / 2)


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

    home: Home
    lake: LocalLake
    traffic: Traffic

    def freshness(self, rate: float, seconds: float) -> Mapping[str, Any]:
        """Measure so many changes a second; `seconds` is the 95th percentile of their age."""
        before = cpu_of_parts(self.home)
        with metered() as meter:
            started = time.time()
            self.traffic.hold(rate, seconds)
            ended = time.time()
        spent = {part: s - before[part] for part, s in cpu_of_parts(self.home).items()}
        await_arrival(self.lake)
        age = freshness(ages_between(self.lake, started, ended)).p95_ms
        if age is None:
            raise RuntimeError("nothing has arrived of what was written")
        return {
            **meter.figures(), "stretch": meter.seconds, "seconds": age / 1000,
            "changes_per_second": round(rate), "cpu_by_part": spent,
        }  # fmt: skip

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
        held = written >= KEPT_UP * rate and late <= early + 500 * TRIGGER_SECONDS
        growth = (late - early) / 1000 / (3 * fifth)
        return Trial(written=written, growth=growth, held=held)


def _rate_runs(given: Streaming, folder: Path) -> list[Mapping[str, Any]]:
    with _stand(given, folder, TRIGGER_SECONDS) as stand:
        alone = _alone(stand, given)
        rate = _held_rate(stand, given)
        wrong = difference(stand.lake)
    held = {"changes_per_second": round(rate), "seconds": 100_000 / rate}
    return [
        _run(OURS, _RATE, [held], given, wrong),
        _run(KAFKA_ALONE, _RATE, alone, given, wrong),
        _run(GOAL, _RATE, [{"seconds": _GOALS[_RATE]}], given, None),
    ]


def _freshness_runs(
    given: Streaming, folder: Path, subject: str, rate: float
) -> list[Mapping[str, Any]]:
    with _stand(given, folder, SHORT_TRIGGER_SECONDS) as stand:
        stand.traffic.hold(rate, given.probe_seconds)  # until Java has compiled most of it
        await_arrival(stand.lake)
        figures = stand.freshness(rate, given.hold_seconds)
        wrong = difference(stand.lake)
    return [
        _run(OURS, subject, [figures], given, wrong),
        _run(GOAL, subject, [{"seconds": _GOALS[subject]}], given, None),
    ]


@contextmanager
def _stand(given: Streaming, folder: Path, trigger_seconds: int) -> Iterator[Stand]:
    """A lake that streams tables with their first rows; gone when the block ends."""
    plan = plan_of_many(given.tables, trigger_seconds)
    with both_compilers(), source_of(folder / "home", plan) as (home, dsn):
        create_tables(dsn, plan.tables)
        traffic = Traffic(dsn, plan.tables)
        traffic.open(_OPENING)
        lake = stream(home, plan)
        await_arrival(lake)
        yield Stand(home, lake, traffic)


def _alone(stand: Stand, given: Streaming) -> list[Mapping[str, Any]]:
    """Debezium's way through a backlog, three times, and then the stream's."""
    shutdown.pause(stand.home, stand.lake)
    figures = [_kafka_alone(stand.lake, stand.traffic, given.backlog) for _ in range(3)]
    local_operations(stand.lake).resume(stand.lake.plan.tables)
    await_arrival(stand.lake)
    return figures


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


def _run(
    contender: str,
    subject: str,
    figures: Sequence[Mapping[str, Any]],
    given: Streaming,
    wrong: str | None,
) -> Mapping[str, Any]:
    """As `Run` takes it."""
    whole = {"subject": subject, "tables": given.tables}
    return {"contender": contender, "subject": whole, "wrong": wrong, "figures": figures}
