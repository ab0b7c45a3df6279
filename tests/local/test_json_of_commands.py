"""Every command on a lake prints exactly one JSON object with --json, also after a slow query.

`tests/unit/test_json_output.py` checks that no command is missing here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from tests.local.running import PROJECT, RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(1200)]

CREATED = """
create table orders (id bigint primary key, n int, big text);
insert into orders select i, i from generate_series(1, 2000) i;
"""
PIPELINE = """\
version: 1
name: json
source: {database: postgres}
tables:
  public.orders: {key: [id], columns: {id: bigint, n: int}}
"""
# The installed command is a program given by -c, which DuckDB takes for an interactive session.
INSTALLED = "import sys; from cdclake.cli.main import main; main(sys.argv[1:])"
SLOW_QUERY = (
    "select sum(hash(a.range, b.range) % 7) from range(40000) a, range({rows}) b, orders_current"
    " where orders_current.id = 1"
)

# Commands that are given the lake's own PostgreSQL as the source.
AT_SOURCE = ("init", "plan", "up")
# In the order in which they run, on one lake: the arguments of the calls, each with its exit code.
ON_A_LAKE: dict[str, list[tuple[int, tuple[str, ...]]]] = {
    "validate": [(0, ("FILE",))],
    "schema": [(0, ())],
    "migrate": [(0, ("FILE",)), (2, ("SCRIPT",))],
    "init": [(0, ("-o", "WRITTEN")), (2, ("-o", "WRITTEN")), (0, ("--update", "WRITTEN"))],
    "new": [(2, ("Not a name",))],  # `tests/installed` makes a project from a database
    "plan": [(0, ("FILE",)), (2, ("SCRIPT",))],
    "up": [(0, ("FILE",)), (0, ("FILE", "--wait", "rows"))],
    "status": [(0, ())],  # a column is not declared, which `new_columns: ignore` allows
    "verify": [(0, ()), (0, ("--deep",)), (0, ("--sample", "10")), (2, ("--table", "nothing"))],
    "source sql": [(0, ("SCRIPT",)), (2, ("FILE",))],
    "metrics": [(0, ())],
    "ui": [(2, ("--port", "TAKEN"))],  # one that is free is served until interrupted
    "trace": [(0, ("orders", "1")), (2, ("orders", "one")), (2, ("nothing", "1"))],
    "peek": [(0, ("orders", "--last", "1")), (2, ("nothing",))],
    "quarantine": [(0, ()), (2, ("nothing",))],
    "psql": [(0, ())],
    "snapshots": [(0, ("orders",)), (2, ("nothing",))],
    "sql": [(0, ("select * from orders_current",)), (2, ("select nonsense",))],
    "job": [
        (0, ("apply_changes",)),
        (0, ("maintain_tables",)),
        (0, ("rebuild_tables", "--table", "orders")),
        (2, ("apply_changes", "--table", "nothing")),
        *((0, (name,)) for name in ("publish_tables", "poll_tables", "refresh_derived")),
        (0, ("check_tables",)),
    ],
    "resync": [(0, ("orders",)), (0, ("orders", "--no-wait")), (2, ("nothing",))],
    "replay": [(0, ()), (2, ("--table", "nothing"))],
    "forget": [(2, ("orders", "1", "--yes")), (2, ("nothing", "1", "--yes"))],
    "redrive": [(0, ("--dry-run",)), (0, ())],  # Firehose delivers no table here
    "runbook": [(0, ()), (0, ("lag",)), (2, ("nothing",))],
    "pause": [(0, ())],
    "resume": [(0, ())],
    "views": [(0, ("FILE",))],
    "doctor": [(0, ()), (0, ("FILE",))],
    "rehearse": [(0, ("FILE", "--schema", "SCHEMA", "--migration", "SCRIPT"))],
    "cost": [(0, ("FILE",))],
    "connect": [(0, ("duckdb",)), (0, ("trino", "--table", "orders"))],
    "connector": [(0, ("FILE", "--host", "db"))],
    "dbt": [(0, ("FILE",))],
    "logs": [(0, ()), (0, ("stream", "--since", "1h"))],
    "down": [(0, ())],
    "demo": [(0, ("--seconds", "3"))],  # its lake is another one
}  # fmt: skip


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    folder = tmp_path_factory.mktemp("lake")
    (folder / "json.yaml").write_text(PIPELINE)
    (folder / "script.sql").write_text("CREATE TABLE more (n int);\n")
    (folder / "schema.sql").write_text("CREATE TABLE orders (id bigint PRIMARY KEY, n int);\n")
    with lake_in(folder) as running:
        with running.connect() as connection:
            connection.execute(CREATED)
        running.run("up", str(folder / "json.yaml"))
        running.assert_equal()
        yield running


def run(lake: RunningLake, *words: str) -> tuple[int, dict[str, Any]]:
    """Return exit code and object of the installed command; the object is all that it prints."""
    files = {
        "FILE": str(lake.home.parent / "json.yaml"),
        "WRITTEN": str(lake.home.parent / "written.yaml"),
        "SCRIPT": str(lake.home.parent / "script.sql"),
        "SCHEMA": str(lake.home.parent / "schema.sql"),
        "TAKEN": str(lake.dsn["port"]),
    }
    done = subprocess.run(
        [sys.executable, "-c", INSTALLED, *(files.get(word, word) for word in words), "--json"],
        cwd=PROJECT,
        env={
            **os.environ,
            "CDCLAKE_HOME": str(lake.home),
            **({"CDCLAKE_SOURCE_DSN": make_conninfo(**lake.dsn)} if words[0] in AT_SOURCE else {}),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.stdout.endswith("\n") and done.stdout.count("\n") == 1, done.stdout[:3000]
    shown = json.loads(done.stdout)
    assert isinstance(shown, dict), shown
    return done.returncode, shown


def test_slow_query_prints_one_object(lake: RunningLake) -> None:
    """DuckDB shows the progress of a query after two seconds, unless it is told not to."""
    rows, seconds = 20_000, 0.0
    while seconds < 6:
        started = time.monotonic()
        code, shown = run(lake, "sql", SLOW_QUERY.format(rows=rows))
        seconds = time.monotonic() - started
        assert code == 0, shown
        rows *= 4


def test_every_command_prints_one_object(lake: RunningLake) -> None:
    with lake.connect() as connection:  # more than one line of text in most answers
        connection.execute("update orders set n = n + 1")
    for name, calls in ON_A_LAKE.items():
        for expected, given in calls:
            code, shown = run(lake, *name.split(), *given)
            assert code == expected, (name, given, shown)
            if code not in (0, 1):
                assert {"code", "message", "remedy"} <= shown["error"].keys(), shown
