"""A real local lake of a measurement's own: PostgreSQL, Debezium, Kafka, S3, Glue and the jobs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

from psycopg.conninfo import make_conninfo

from benchmarks import latency_proxy
from benchmarks.metering import cpu_by_program
from benchmarks.session import PROJECT
from cdclake import naming
from cdclake.interrupts import uninterrupted
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.reader.catalog import TableSnapshot
from cdclake.jobs.verify.catch_up import CatchUp
from cdclake.local import lifecycle
from cdclake.local.components import aws
from cdclake.local.demo.freshness import Appended, ages, first_visible
from cdclake.local.lake import spark_jobs, stack
from cdclake.local.lake.lake import LocalLake, open_lake
from cdclake.local.lake.spark_jobs import STREAM
from cdclake.local.lake.topics import end_offsets
from cdclake.local.process import supervisor_client
from cdclake.local.process.home import Home
from cdclake.local.process.process_spec import Observed, Spec
from cdclake.local.process.supervisor_client import SUPERVISOR, Component
from cdclake.local.reader.duck import lake_reader
from cdclake.local.verify import verify_lake
from cdclake.plan import Plan

_POLL_SECONDS = 0.5
_ARRIVAL_SECONDS = 1800.0


@contextmanager
def source_of(folder: Path, plan: Plan) -> Iterator[tuple[Home, str]]:
    """A lake's home with all running but connector and stream, and the DSN of its database.

    Everything is stopped and gone when the block ends.
    """
    home = Home(folder)
    home.create()
    try:
        started = lifecycle.up_bare(home, plan, None)
        yield home, make_conninfo(**started["source"])
    finally:
        with uninterrupted():
            stack.purge(home)


def stream(home: Home, plan: Plan) -> LocalLake:
    """Have the lake stream the plan; it returns when a marker has come through."""
    lifecycle.up(home, plan, "a benchmark's", None)
    return open_lake(home)


@contextmanager
def counted_aws(*, is_far: bool) -> Iterator[None]:
    """Count requests to S3 and Glue of lakes that start within the block.

    Far away, S3 is 30 ms and Glue 80 ms off.
    """
    near = aws.component

    def far(home: Home, port: int) -> Component:
        component = near(home, port)
        command = latency_proxy.command(port, home.data(aws.NAME), is_far=is_far)
        spec = replace(component.spec, argv=command, cwd=str(PROJECT))
        return replace(component, spec=spec)

    with mock.patch.object(aws, "component", far):
        yield


@contextmanager
def both_compilers() -> Iterator[None]:
    """Let Java's programs that start within the block use both of its compilers, as on AWS."""
    ensure, first_alone = supervisor_client.ensure, "-XX:TieredStopAtLevel=1"

    def ensure_with_both(home: Home, wanted: Sequence[Component]) -> Observed:
        return ensure(
            home, [replace(each, spec=_without(each.spec, first_alone)) for each in wanted]
        )

    with (
        mock.patch.object(supervisor_client, "ensure", ensure_with_both),
        mock.patch.object(spark_jobs, "_ONE_COMPILER", ()),
    ):
        yield


def _without(spec: Spec, option: str) -> Spec:
    return replace(spec, argv=tuple(word for word in spec.argv if word != option))


def cpu_of_parts(home: Home) -> dict[str, float]:
    """Return the CPU seconds so far of each part of the lake, and of its writer: this process.

    The stream's Java is a part, and the rest of it, which is Python, another one.
    """
    writer = os.times()
    found = {"writer": writer.user + writer.system}
    for part in stack.components(home):
        if part["name"] == SUPERVISOR or part["pid"] is None:
            continue
        spent = cpu_by_program(part["pid"])
        java = spent.pop("java", 0.0)
        others = sum(spent.values())
        named = {part["name"]: java + others}
        if part["name"] == STREAM:
            named = {f"{STREAM}'s Java": java, f"{STREAM}'s Python": others}
        found |= named
    return found


def await_arrival(lake: LocalLake) -> None:
    """Return when everything that was written before the call is in the lake."""
    arrival = CatchUp(
        plan=lake.plan,
        dsn=lake.dsn,
        ends=partial(end_offsets, lake.kafka),
        progress=lambda: Progress.load(lake.control),
        arrived=Progress.offsets,
        wait_s=_ARRIVAL_SECONDS,
    )
    stopped = arrival.wait(lake.plan.tables, lambda: None)
    if stopped:
        raise RuntimeError(f"tables have stopped: {stopped}")


def ages_between(lake: LocalLake, start: float, stop: float) -> list[tuple[float, int]]:
    """(milliseconds from commit to a reader's sight, changes) of what was committed meanwhile.

    `start` and `stop` are seconds since 1970, of this machine's clock as all others here.
    """
    reader, shares = lake_reader(lake), []
    moment = f"epoch_us({naming.COMMITTED_AT})"
    with reader.open(lake.plan.tables) as duck:
        for table in lake.plan.tables:
            query = (
                f"SELECT epoch_us({naming.INGESTED_AT}), {moment}, count(*) FROM {table.changes}"
                f" WHERE {moment} BETWEEN {start * 1e6:.0f} AND {stop * 1e6:.0f} GROUP BY ALL"
            )
            found = [Appended(*row) for row in duck.execute(query).fetchall()]
            visible = first_visible(
                (ChangesStamp.from_json(snapshot.stamp).ingested_through, snapshot.committed_ms)
                for snapshot in reader.catalog.load(table.changes).snapshots.values()
                if snapshot.stamp is not None
            )
            shares += ages(found, visible)
    return shares


def difference(lake: LocalLake) -> str | None:
    """How the lake's tables differ from their source, as `verify` finds; None if they do not."""
    report = verify_lake(lake)
    wrong = [table.table for table in report.tables if not table.ok or table.unsettled]
    return f"{', '.join(wrong)} differ from the source" if wrong else None


def await_rows(lake: LocalLake, table: str, rows: int, timeout_seconds: float) -> TableSnapshot:
    """The table's first snapshot with so many rows; TimeoutError if there is none in time."""
    catalog = lake_reader(lake).catalog
    deadline = time.monotonic() + timeout_seconds
    while True:
        snapshots = catalog.load(table).snapshots.values()
        complete = [found for found in snapshots if found.rows - found.position_deletes >= rows]
        if complete:
            return min(complete, key=lambda found: found.committed_ms)
        if time.monotonic() > deadline:
            raise TimeoutError(f"{table} had not {rows} rows within {timeout_seconds:.0f} s")
        time.sleep(_POLL_SECONDS)
