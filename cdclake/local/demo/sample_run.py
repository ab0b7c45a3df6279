"""The demo over a sample database: load, stream, change, verify."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from cdclake import naming
from cdclake.config.resolve import load_plan
from cdclake.local import lifecycle
from cdclake.local.demo.measure import measure
from cdclake.local.demo.proof import prove, verdict
from cdclake.local.demo.sample_database import SampleDatabase, numbered
from cdclake.local.demo.show import Show, step
from cdclake.local.demo.tasks import Stopwatch
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LocalLake, open_lake, running_source
from cdclake.local.process.home import Home
from cdclake.local.reader.duck import lake_reader

_KINDS = {"r": "snapshot", "c": "inserts", "u": "updates", "d": "deletes"}


def run_sample(
    home: Home, database: SampleDatabase, folder: Path, watch: Stopwatch, show: Show, *, keep: bool
) -> dict[str, Any]:
    """Run the demo and return its answer: the comparison, the figures, and each table's events."""
    database.check(folder)
    plan = load_plan(database.pipeline)
    with step(show, "start the lake"):
        lifecycle.up_bare(home, plan, None)
    dsn, _ = running_source(home)
    with step(show, f"load {database.name}") as said:
        said.append(f"{database.load(dsn, folder):,} rows")
    with step(show, "stream its tables"):
        lifecycle.up(home, plan, str(database.pipeline), None, wait=lifecycle.ROWS)
    lake = open_lake(home)
    statements = database.changes()
    opened_at = watch.started_at + watch.elapsed
    with psycopg.connect(dsn, autocommit=True) as session:
        for shown, statement in numbered(statements):
            with step(show, shown) as said:
                done = session.execute(statement.sql.encode())
                said.append(f"{done.rowcount} rows")
    with step(show, "verify") as said:
        proof = prove(lake)
        said.append(verdict(proof))
    with step(show, "measure"):
        measured, events = measure(lake), _events(lake)
    if not keep:
        with step(show, "stop everything"):
            stack.shut_down(home)
    tables = [{**table, **events[table["table"]]} for table in proof["tables"]]
    return {
        **proof,
        "tables": tables,
        **measured.figures(watch.started_at, opened_at),
        "database": database.name,
        "statements": len(statements),
    }


def _events(lake: LocalLake) -> dict[str, dict[str, int]]:
    """Count the events of each changelog by kind."""
    found: dict[str, dict[str, int]] = {}
    with lake_reader(lake).open() as session:
        for table in lake.plan.all_tables:
            counts = dict.fromkeys(_KINDS.values(), 0)
            rows = session.execute(
                f'SELECT {naming.OP}, count(*) FROM "{table.changes}" GROUP BY ALL'
            ).fetchall()
            counts.update({_KINDS[op]: count for op, count in rows if op in _KINDS})
            found[table.name] = counts
    return found
