"""The ground of the race: the same source, connector, Kafka, S3 and Glue for every contender."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil

from benchmarks.iceberg_catalog import ENDPOINT
from benchmarks.lake_fixture import (
    ages_between,
    await_arrival,
    both_compilers,
    counted_aws,
    source_of,
)
from benchmarks.many_tables import plan_of_many
from benchmarks.metering import processes_below
from benchmarks.race.contender_process import SURROUNDINGS_CORE, lifetime_cpu_seconds
from benchmarks.race.held_rate import judged
from benchmarks.race.racers import Racer, Running
from benchmarks.race.sightings import Sightings, newest_writes
from benchmarks.race.zipf_traffic import ZipfTraffic
from benchmarks.requests import requests_so_far
from benchmarks.source_fixture import create_tables
from benchmarks.streaming import Trial
from benchmarks.threads import ENDED, cpu_by_kind, cpu_by_thread
from cdclake.local.demo.freshness import freshness
from cdclake.local.lake.lake import LocalLake
from cdclake.local.process.supervisor_client import log_tail

_ARRIVAL_SECONDS, _POLL_SECONDS = 900.0, 1.0


class Sight(Protocol):
    """View of a reader: how long it waits for what was written."""

    def await_arrival(self) -> None:
        """Return when readers see everything that was written before the call."""
        ...

    def ages_between(self, start: float, stop: float) -> list[tuple[float, int]]:
        """Return (milliseconds until sight, changes) of what was written meanwhile."""
        ...


@dataclass(frozen=True, slots=True)
class OurSight:
    """`_current` has the changelog's tail: a change is seen from the changelog's commit on."""

    lake: LocalLake

    def await_arrival(self) -> None:
        """Return when everything that was written before the call is in the changelogs."""
        await_arrival(self.lake)

    def ages_between(self, start: float, stop: float) -> list[tuple[float, int]]:
        """Return (milliseconds from commit to sight, changes)."""
        return ages_between(self.lake, start, stop)


@dataclass(frozen=True, slots=True)
class PeersSight:
    """Readers of a peer's table see a row from its table's commit on.

    A last row in each table, written by the call, ends the wait: a topic keeps its order.
    """

    lake: LocalLake
    traffic: ZipfTraffic
    pid: int
    log: Path
    sightings: Sightings

    def await_arrival(self) -> None:
        """Return when the table of each topic has its last row; RuntimeError if none comes."""
        self.traffic.open(1)
        last = newest_writes(self.lake.dsn, self.lake.plan.tables)
        deadline = time.monotonic() + _ARRIVAL_SECONDS
        for table in self.lake.plan.tables:
            while not self.sightings.has_all(table, last[table.name]):
                if not _runs(self.pid) or time.monotonic() > deadline:
                    said = log_tail(self.log)
                    raise RuntimeError(f"the last row of {table.name} is missing:\n{said}")
                time.sleep(_POLL_SECONDS)

    def ages_between(self, start: float, stop: float) -> list[tuple[float, int]]:
        """Return (milliseconds from writing to sight, rows)."""
        return self.sightings.ages_between(start, stop)


@dataclass(frozen=True, slots=True)
class Ground:
    """A running contender, its traffic, and the view of its readers."""

    lake: LocalLake
    traffic: ZipfTraffic
    sight: Sight
    contender: Running

    def end_contender(self) -> None:
        """End the contender; what it has written stays."""
        self.contender.end()

    def trial(self, rate: float, seconds: float) -> Trial:
        """Write so many changes a second for so long, and judge what became of them."""
        begun = time.time()
        written = self.traffic.hold(rate, seconds)
        ended = time.time()
        self.sight.await_arrival()
        return judged(rate, written, self.sight.ages_between, begun, ended)

    def stretch(self, rate: float, seconds: float) -> Mapping[str, Any]:
        """Measure so many changes a second for so long.

        CPU is the contender's until two triggers after readers see the last of them: our stream
        updates states after the changelogs. Requests are those of the time of writing, since the
        look at the tables afterwards sends some too.
        """
        self._settle()
        spent, asked = lifetime_cpu_seconds(self.contender.pid), requests_so_far()
        by_thread = cpu_by_thread(processes_below(self.contender.pid))
        begun = time.time()
        written = self.traffic.hold(rate, seconds)
        ended, requests = time.time(), requests_so_far() - asked
        self.sight.await_arrival()
        self._settle()
        cpu = lifetime_cpu_seconds(self.contender.pid) - spent
        by_kind = cpu_by_kind(by_thread, cpu_by_thread(processes_below(self.contender.pid)))
        found = self.sight.ages_between(begun, ended)
        age = freshness(found)
        if age.p50_ms is None or age.p95_ms is None:
            raise RuntimeError("nothing has arrived of what was written")
        changes = written * (ended - begun)
        return {
            "changes_per_second": round(written),
            "changes": round(changes),
            "cpu_seconds": round(cpu, 2),
            "cpu_by_kind": _with_ended(by_kind, cpu),
            "changes_per_cpu_second": round(changes / cpu),
            "p50_seconds": age.p50_ms / 1000,
            "p95_seconds": age.p95_ms / 1000,
            "max_seconds": round(max(found)[0] / 1000, 3),
            "requests": {"s3": requests.s3, "glue": requests.glue},
        }

    def _settle(self) -> None:
        time.sleep(2 * self.lake.plan.trigger_seconds)


@contextmanager
def ground_of(
    racer: Racer, folder: Path, *, tables: int, trigger_seconds: int, rows: int, is_far: bool
) -> Iterator[Ground]:
    """Have the contender stream tables that open with `rows` rows each; gone when the block ends.

    This process and all that it starts share a core; the contender has the other one.
    """
    os.sched_setaffinity(0, {SURROUNDINGS_CORE})
    plan = plan_of_many(tables, trigger_seconds)
    own_folder = folder / "contender"
    own_folder.mkdir(mode=0o700)
    with (
        counted_aws(is_far=is_far),
        both_compilers(),
        source_of(folder / "home", plan) as (home, dsn),
    ):
        create_tables(dsn, plan.tables)
        racer.prepare(dsn, plan)
        traffic = ZipfTraffic(dsn, plan.tables, rows)
        traffic.open(rows)
        contender = racer.start(home, plan, own_folder)
        try:
            yield _seen(contender, racer, traffic)
        finally:
            contender.end()


def _seen(contender: Running, racer: Racer, traffic: ZipfTraffic) -> Ground:
    """Return the ground when the tables have their opening rows."""
    lake = contender.lake
    os.environ[ENDPOINT] = lake.s3
    sight: Sight = OurSight(lake)
    if racer.command is not None:
        sight = PeersSight(lake, traffic, contender.pid, contender.log, Sightings(lake))
    sight.await_arrival()
    return Ground(lake, traffic, sight, contender)


def _with_ended(by_kind: Mapping[str, float], cpu_seconds: float) -> dict[str, float]:
    """Return the seconds by kind; those of processes that have ended since count as ended."""
    ended = cpu_seconds - sum(by_kind.values())
    whole = {**by_kind, ENDED: by_kind.get(ENDED, 0.0) + ended}
    return {kind: round(seconds, 2) for kind, seconds in whole.items()}


def _runs(pid: int) -> bool:
    """Return True if the process has not ended; its parent may not have waited for it yet."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
