"""Contenders of the race and their set-up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from unittest import mock

import psycopg
from psycopg import sql

from benchmarks.contenders import OURS
from benchmarks.lake_fixture import stream
from benchmarks.race import flink, spark
from benchmarks.race.contender_process import LOG, ON_CORE, end, start
from cdclake.local import lifecycle, operations_backend, shutdown
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LakeState, LocalLake, open_lake
from cdclake.local.lake.spark_jobs import STREAM, stream_spec
from cdclake.local.process.home import Home
from cdclake.local.process.process_spec import Spec
from cdclake.plan import Plan

SPARK_MERGE, FLINK_UPSERT = "spark_merge", "flink_upsert"


@dataclass(frozen=True, slots=True)
class Running:
    """A contender at work on a lake's topics."""

    lake: LocalLake
    pid: int  # all its processes are below
    log: Path
    end: Callable[[], object]  # may be called again


@dataclass(frozen=True, slots=True)
class Racer:
    """One way from the topics to current rows; without a command it is our stream."""

    given: str
    cannot: str
    whole_rows: bool = False  # the source logs whole rows (REPLICA IDENTITY FULL)
    command: Callable[[LocalLake, Path], list[str]] | None = None
    variables: Callable[[LocalLake, Path], Mapping[str, str]] | None = None

    def prepare(self, dsn: str, plan: Plan) -> None:
        """Set up the tables of the source."""
        if not self.whole_rows:
            return
        with psycopg.connect(dsn, autocommit=True) as connection:
            for table in plan.tables:
                name = sql.Identifier(table.schema, table.table)
                connection.execute(sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(name))

    def start(self, home: Home, plan: Plan, folder: Path) -> Running:
        """Start connector and contender."""
        if self.command is None or self.variables is None:
            with _on_its_core():
                lake = stream(home, plan)
            return Running(
                lake, _pid_of_stream(home), home.log(STREAM), partial(shutdown.pause, home, lake)
            )
        replace(LakeState.load(home), paused=True).save(home)  # all but our stream
        lifecycle.up(home, plan, "a benchmark's", None)
        lake = open_lake(home)
        process = start(self.command(lake, folder), self.variables(lake, folder), folder)
        return Running(lake, process.pid, folder / LOG, partial(end, process))


RACERS = {
    OURS: Racer("the stream as `cdclake up` runs it, with both of Java's compilers", ""),
    SPARK_MERGE: Racer(
        "one query over all topics, a cached batch, `from_json`, a merge-on-read MERGE a table, "
        "four at a time, no shuffle of what is written; our general Spark settings",
        "keep the history of changes, refuse an event that is not exactly right, compact",
        command=spark.command,
        variables=spark.variables,
    ),
    FLINK_UPSERT: Racer(
        "one job for all tables, `debezium-json`, format 2 in upsert mode, a checkpoint as often "
        "as our trigger; the source logs whole rows, as its documentation demands",
        "keep the history of changes, apply a truncate, compact",
        whole_rows=True,
        command=flink.command,
        variables=flink.variables,
    ),
}


@contextmanager
def _on_its_core() -> Iterator[None]:
    def spec(lake: LocalLake) -> Spec:
        found = stream_spec(lake)
        return replace(found, argv=(*ON_CORE, *found.argv))

    with mock.patch.object(operations_backend, "stream_spec", spec):
        yield


def _pid_of_stream(home: Home) -> int:
    [pid] = [part["pid"] for part in stack.components(home) if part["name"] == STREAM]
    return int(pid)
