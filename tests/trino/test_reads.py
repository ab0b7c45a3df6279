"""Reads of `<t>_current` in Trino while writers, applies, rollbacks and maintenance run.

No read may miss what the changelog had when the read began, nor show what the source did not have
since then, nor what it had replaced longer ago than the lake is late. By default it is a short run;
`make prove PART=reads` has many.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import boto3
import pytest
from trino.exceptions import TrinoUserError

from cdclake.config.resolve import load_plan
from cdclake.firehose.redrive_stream import lateness_seconds
from cdclake.iceberg.athena_views import athena_views, tail_bound
from cdclake.jobs.iceberg.catalog_view import CatalogViews
from cdclake.local.lake.lake import aws_environment
from cdclake.local.trino.server import Trino
from cdclake.plan import Plan, Table
from tests.local.repeated_work import repeated
from tests.local.running import RunningLake, lake_in
from tests.trino.lake_catalog import create_views, need_iceberg_jars, trino_at
from tests.trino.source_history import WatchedTable

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(1200)]

READS = int(os.environ.get("CDCLAKE_READS", "25"))
SEED = int(os.environ.get("CDCLAKE_READ_SEED", "0"))
ROUNDS = 5  # disturbances that have ended; the sixth, maintenance, takes longer
PAUSE_S = 0.4
LATE_S = 60  # the stream's trigger and batches, on two cores that run everything else as well
FIREHOSE_FAULTS = f"{SEED}:shuffle,duplicate,delay,split,fail"
PIPELINE = """\
version: 1
name: watched
source: {database: watched}
stream: {trigger_seconds: 10}
schedules: {apply: rate(1 day)}
firehose:
  buffer: {seconds: 10, mib: 64}
  function: {seconds: 1, mib: 1}
tables:
  public.accounts:
    key: [id]
    apply: scheduled
    columns: {id: bigint, version: bigint, note: text}
  public.parcels:
    key: [id]
    delivery: firehose
    columns: {id: bigint, version: bigint, note: text}
  public.tickets:
    key: [id, part]
    columns: {id: bigint, part: int, version: bigint, note: text}
"""
# Firehose orders nothing: a value that was not sent would be looked up in what has arrived.
TABLES = [
    WatchedTable("accounts", SEED, is_toasted=True),
    WatchedTable("parcels", SEED, is_toasted=False),
    WatchedTable("tickets", SEED, is_toasted=True, is_composite=True),
]
APPLIED_BY_JOB = ("accounts", "parcels")


class Disturbances:
    """Jobs, rollbacks and renewed views in turn, as schedules and an operator would start them."""

    def __init__(self, lake: RunningLake, plan: Plan, engine: Trino) -> None:
        self._lake, self._plan = lake, plan
        self._engine = Trino(engine.port, engine.user)  # each thread has its session
        apply, maintain = (
            partial(lake.run, "job", job) for job in ("apply_changes", "maintain_tables")
        )
        works: list[Callable[[], Any]] = [
            *(apply, self._create_views, apply, self._roll_back, self._renew, maintain)
        ]
        self._works = cycle(works)
        self._views = CatalogViews()
        self.rollbacks = self.renewals = 0

    def next(self) -> None:
        """Run the next one."""
        next(self._works)()

    def _roll_back(self) -> None:
        """Set the states back to before their newest applied changes."""
        database = self._plan.lake_database
        for table in APPLIED_BY_JOB:
            stamped = (
                f'SELECT s.snapshot_id FROM "{database}"."{table}$snapshots" AS s'
                f' JOIN "{database}"."{table}$history" AS h ON s.snapshot_id = h.snapshot_id'
                " WHERE is_current_ancestor AND element_at(summary, 'cdclake.stamp') IS NOT NULL"
                " ORDER BY s.committed_at DESC OFFSET 1 LIMIT 1"
            )
            for (snapshot,) in self._engine.rows(stamped):
                self._engine.rows(
                    f"CALL system.rollback_to_snapshot('{database}', '{table}', {snapshot})"
                )
                self.rollbacks += 1

    def _create_views(self) -> None:
        """Create the views again with a literal bound, as `cdclake views` does."""
        for table, since in self._bounds():
            for statement in athena_views(table, self._plan, since).values():
                self._engine.rows(statement)

    def _renew(self) -> None:
        """Replace the bounds in the catalog, as the jobs that commit states do."""
        for table, since in self._bounds():
            name, choose = f"{table.name}_current", partial(_chosen, since)
            assert self._views.replace_bound(self._plan.lake_database, name, choose) == since
            self.renewals += 1

    def _bounds(self) -> Iterator[tuple[Table, int]]:
        for table in self._plan.all_tables:
            [[since]] = self._engine.rows(tail_bound(table, self._plan))
            yield table, since


def _chosen(since: int, *_: object) -> int:
    return since


def write_all(connection: Any) -> None:
    for table in TABLES:
        table.change(connection)


Known = dict[str, dict[int, int]]  # by table and key: the transaction of its newest event


def known_of_changelogs(engine: Trino, database: str) -> Known:
    known: Known = {table.name: {} for table in TABLES}
    query = " UNION ALL ".join(table.newest_query(database) for table in TABLES)
    for name, key, transaction in engine.rows(query):
        known[name][int(key)] = int(transaction)
    return known


def faults_of_a_read(
    engine: Trino, table: WatchedTable, known: Known, plan: Plan
) -> list[str] | None:
    """What is wrong with one read; None if the view refused it, since its bound is stale."""
    lateness = LATE_S + lateness_seconds(plan, plan.table(table.name, of="file"))
    newer_than, database = time.monotonic() - lateness, plan.lake_database
    try:
        found = engine.rows(table.query(database))
    except TrinoUserError as error:
        if "then run `cdclake views`" in str(error):
            return None
        raise
    rows = [(int(key), int(version), str(mark)) for key, version, mark in found]
    return table.faults(known[table.name], rows, newer_than=newer_than)


def test_reads_show_only_what_the_source_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_iceberg_jars()
    file = tmp_path / "watched.yaml"
    file.write_text(PIPELINE)
    plan = load_plan(file)
    with ExitStack() as opened:
        lake = opened.enter_context(lake_in(tmp_path))
        source = opened.enter_context(lake.connect())
        for table in TABLES:
            source.execute(table.definition.encode())
        lake.run("up", str(file), CDCLAKE_FIREHOSE_TROUBLE=FIREHOSE_FAULTS)
        for name, value in aws_environment(lake.endpoints).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
        engine = opened.enter_context(trino_at(lake, tmp_path / "trino"))
        create_views(engine, plan)
        disturbances = Disturbances(lake, plan, engine)
        opened.enter_context(repeated(partial(write_all, source), PAUSE_S))
        rounds = opened.enter_context(repeated(disturbances.next))
        found: list[str] = []
        reads = 0
        while not found and (reads < READS or rounds[0] < ROUNDS):
            known = known_of_changelogs(engine, plan.lake_database)
            for table in TABLES:
                faults = faults_of_a_read(engine, table, known, plan)
                reads += faults is not None
                found += faults or []
        assert found == []
        assert disturbances.rollbacks > 0 and disturbances.renewals > 0
        assert all(any(len(k.states) > 2 for k in table.keys.values()) for table in TABLES)
