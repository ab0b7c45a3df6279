"""A real lake driven as a user would: through the command line, with what it prints as JSON."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg

from cdclake.fail_points import FAIL_POINT_KEY
from cdclake.local.lake import stack
from cdclake.local.lake.stack import Endpoints
from cdclake.local.process import orphan_processes
from cdclake.local.process.home import Home

PROJECT = Path(__file__).resolve().parents[2]
SHOP = PROJECT / "pipelines" / "shop.yaml"
LONGEST_COMMAND_S = 400.0  # `up` gives up after 300
SHOP_SQL = """
create type order_status as enum ('new', 'paid', 'sent');
create table customers (customer_id bigint primary key, name text not null, email text, phone text,
  address text, created_at timestamptz not null default now(),
  updated_at timestamptz not null default now());
create table orders (order_id bigint primary key, customer_id bigint not null,
  status order_status not null default 'new', total numeric(12,2), details jsonb, note text,
  ordered_at timestamptz not null default now(), updated_at timestamptz not null default now());
create table order_items (order_id bigint, line_no int, sku text, quantity int,
  unit_price numeric(10,2), discount numeric(5,4), gift boolean, primary key (order_id, line_no));
insert into customers select i, 'name ' || i, i || '@example.org', null, repeat('addr ', i % 5)
  from generate_series(1, 500) i;
insert into orders select i, i % 500, 'new', i * 1.25, '{"big": 12345678901234567890.123456789}',
  case when i % 10 = 0 then
    (select string_agg(md5(random()::text), '') from generate_series(1, 200)) end
  from generate_series(1, 1000) i;
insert into order_items select i, j, 'sku' || j, j, 1.5, 0.1234, true
  from generate_series(1, 1000) i, generate_series(1, 2) j;
"""

DERIVED = """
derived:
  order_lines:
    sql: |
      SELECT i.order_id, i.line_no, i.sku, i.unit_price, o.status, o.ordered_at,
             c.customer_id, c.name AS customer
      FROM order_items_current AS i
      JOIN orders_current AS o ON o.order_id = i.order_id
      LEFT JOIN customers_current AS c ON c.customer_id = o.customer_id
    key: [order_id, line_no]
  order_lines_parquet:
    sql: |
      SELECT i.order_id, i.line_no, i.unit_price, o.ordered_at, o.status
      FROM order_items_current AS i JOIN orders_current AS o ON o.order_id = i.order_id
    key: [order_id, line_no]
    partition_by: [status]
    format: parquet
  totals_json:
    sql: |
      SELECT customer_id, sum(total) AS total, max(ordered_at) AS last_order
      FROM orders_current GROUP BY customer_id
    key: [customer_id]
    format: json
"""


class RunningLake:
    """One lake home and its commands."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.dsn: dict[str, Any] = {}  # of the embedded database, once it was asked for

    def run(self, *words: str, expect: int | None = 0, **environment: str) -> dict[str, Any]:
        """One command with --json; its object, after a look at the exit code.

        That of `status` is a finding, as is its `health`.
        """
        return self.run_within(LONGEST_COMMAND_S, *words, expect=expect, **environment)

    def run_within(
        self, longest_s: float, *words: str, expect: int | None = 0, **environment: str
    ) -> dict[str, Any]:
        """As `run`, for a command that may take longer."""
        accepted = (0, 1, 4) if words[0] == "status" and expect == 0 else (expect,)
        done = subprocess.run(
            [sys.executable, "-m", "cdclake.cli.main", *words, "--json"],
            cwd=PROJECT,
            env={**os.environ, "CDCLAKE_HOME": str(self.home), **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=longest_s,
        )
        if expect is not None:
            assert done.returncode in accepted, (words, done.stdout[-3000:], done.stderr[-3000:])
        assert "Traceback" not in done.stderr, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def die_in_up(self, file: str) -> None:
        """Run `up` until it has prepared the source and published its plan, and kill it there."""
        died = subprocess.run(
            [sys.executable, "-m", "cdclake.cli.main", "up", file, "--json"],
            cwd=PROJECT,
            env={**os.environ, "CDCLAKE_HOME": str(self.home), FAIL_POINT_KEY: "after_plan"},
            check=False,
        )
        assert died.returncode == -signal.SIGKILL

    def connect(self) -> "psycopg.Connection[tuple[Any, ...]]":
        """A superuser's session in the embedded database."""
        if not self.dsn:
            self.dsn = self.run("up", "--no-stream")["source"]
        return psycopg.connect(**self.dsn, autocommit=True)

    @property
    def endpoints(self) -> Endpoints:
        """The addresses, with the credentials of their clients."""
        return stack.endpoints(Home(self.home), embedded_postgres=False)

    def sql(self, query: str) -> list[list[Any]]:
        """Rows of a query through the independent reader."""
        rows: list[list[Any]] = self.run("sql", query)["rows"]
        return rows

    def pid(self, component: str) -> int:
        """The process whose death stops the component."""
        parts = self.run("status")["components"]
        return int(next(part["pid"] for part in parts if part["name"] == component))

    def is_running(self, component: str) -> bool:
        """Whether `status` says so."""
        parts = self.run("status")["components"]
        return any(part["name"] == component and part["state"] == "running" for part in parts)

    def kill(self, component: str) -> None:
        """SIGKILL, as a crash would."""
        os.kill(self.pid(component), signal.SIGKILL)

    def processes(self) -> list[psutil.Process]:
        """Every process that belongs to this lake."""
        found = []
        for process in psutil.process_iter():
            try:
                if orphan_processes.component_in(process.environ(), self.home):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def assert_equal(self, *words: str) -> dict[str, dict[str, Any]]:
        """`verify` finds lake and source equal; its tables by lake name."""
        report = self.run("verify", *words, expect=None)
        assert report["ok"], report
        for table in report["tables"]:
            problems = (table["missing"], table["extra"], table["different"], table["unsettled"])
            assert problems == (0, 0, 0, 0), table
        return {table["table"]: table for table in report["tables"]}

    def assert_each_identity_once(self, table: str, *key: str) -> None:
        """No event stands twice in a keyed table's log."""
        identity = ", ".join(["cdc_epoch", "cdc_phase", "cdc_lsn", "cdc_op", *key])
        twice = self.sql(
            f"select {identity}, count(*) from {table}_changes "
            f"where cdc_partition >= 0 group by all having count(*) > 1"
        )
        assert twice == []

    def eventually(self, condition, seconds: float = 30.0) -> None:
        """Poll until the condition holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s"
            time.sleep(0.5)


@contextmanager
def lake_in(folder: Path) -> Iterator[RunningLake]:
    """A lake of its own that is gone afterwards, also after a failure."""
    lake = RunningLake(folder / "home")
    try:
        yield lake
    finally:
        lake.run("down", "--purge", expect=None)
        assert lake.processes() == []


@contextmanager
def shop_lake_in(folder: Path) -> Iterator[RunningLake]:
    """The same, with the shop's tables in it, which it streams."""
    with lake_in(folder) as lake:
        with lake.connect() as connection:
            connection.execute(SHOP_SQL)
        lake.run("up", str(SHOP))
        yield lake


@contextmanager
def streamed_lake_in(folder: Path, pipeline: str, source: str) -> Iterator[RunningLake]:
    """The same, with a pipeline file over tables that the SQL `source` creates and fills."""
    file = folder / "pipeline.yaml"
    file.write_text(pipeline)
    with lake_in(folder) as lake:
        with lake.connect() as connection:
            connection.execute(source.encode())
        lake.run("up", str(file))
        lake.assert_equal()
        yield lake


class ShopWriter:
    """Random changes of the shop's tables, in transactions of many rows; seeded."""

    def __init__(self, connection: "psycopg.Connection[tuple[Any, ...]]", seed: int) -> None:
        self._connection = connection
        self._random = random.Random(seed)
        self._next = 1_000_000 + seed * 100_000

    def change(self, transactions: int) -> None:
        """So many transactions of inserts, updates, deletes and changed keys."""
        for _ in range(transactions):
            with self._connection.transaction():
                for _ in range(self._random.randrange(1, 8)):
                    self._connection.execute(self._statement())

    def _statement(self) -> str:
        pick = self._random.randrange
        self._next += 1
        return self._random.choice(
            [
                f"insert into customers values ({self._next}, 'new', null, '1', 'x')",
                f"update customers set name = name || '!' where customer_id = {pick(1, 500)}",
                "update orders set status = 'paid', total = total + 0.01 "
                f"where order_id < 1000 and order_id % 97 = {pick(0, 97)}",
                f"delete from customers where customer_id = {pick(1, 500)}",
                f"insert into orders values ({self._next}, 1, 'new', 7, '{{}}', 'n')",
                f"update orders set order_id = {self._next} where order_id = {pick(1, 1000)}",
                f"delete from order_items where order_id = {pick(1, 1000)}",
                f"update order_items set line_no = line_no + 100 where order_id = {pick(1, 1000)}",
                f"insert into order_items values ({self._next}, 1, 's', 1, 1, 0, null)",
            ]
        )


class Business:
    """Changes of the shop's tables on a thread of their own, for as long as the block lasts.

    After each round of two transactions `after_round` is called with the connection. The block
    fails with the error that ended the changes, or if there was none at all.
    """

    def __init__(
        self,
        lake: RunningLake,
        *,
        seed: int,
        pause_s: float = 0.1,
        after_round: "Callable[[psycopg.Connection[tuple[Any, ...]], int], None] | None" = None,
    ) -> None:
        self._lake, self._seed, self._pause_s = lake, seed, pause_s
        self._after_round = after_round
        self._closed = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=1)
        self.rounds = 0

    def __enter__(self) -> "Business":
        self._changes = self._pool.submit(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._pool.shutdown()
        self._changes.result()
        assert self.rounds, "nothing was changed"

    def _run(self) -> None:
        with self._lake.connect() as connection:
            writer = ShopWriter(connection, self._seed)
            while not self._closed.wait(self._pause_s):
                writer.change(transactions=2)
                if self._after_round is not None:
                    self._after_round(connection, self.rounds)
                self.rounds += 1
