"""The shop's statements on a real PostgreSQL, and the whole demo, proved and gone afterwards."""

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cdclake.local.demo.shop import Shop
from cdclake.local.demo.shop_tables import KEYS
from cdclake.local.demo.writer import Writer, open_shop
from tests.local.source_database import running_server
from tests.source_tree import PROJECT

pytestmark = pytest.mark.local

BUSINESS = 1500


def test_every_statement_hits_in_postgres() -> None:
    shop = Shop(1)
    with running_server() as dsn:
        opened = open_shop(dsn, shop.opening())
        with psycopg.connect(dsn, autocommit=True) as connection:
            for transaction in islice(shop.transactions(), BUSINESS):
                with connection.transaction() as block:
                    for change in transaction.changes:
                        cursor = connection.cursor()
                        cursor.executemany(change.sql, change.rows)
                        assert cursor.rowcount == len(change.rows), (transaction.name, change)
                    if transaction.rolled_back:
                        raise psycopg.Rollback(block)
            assert opened.total > 3000
            assert _count(connection, "customers") == len(shop.books.customers)
            assert _count(connection, "orders") == len(shop.books.orders)
            lines = sum(len(order.items) for order in shop.books.orders)
            assert _count(connection, "order_items") == lines
            toast = connection.execute(
                "SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE relname = 'orders'"
            ).fetchone()
            assert toast is not None and toast[0] > 0, "large notes are out of their rows"


def test_the_writer_counts_what_it_wrote_and_stops() -> None:
    shop = Shop(2)
    with running_server() as dsn:
        opened = open_shop(dsn, shop.opening())
        writer = Writer(dsn, opened, islice(shop.transactions(), 300), rate=100_000)
        writer.start()
        writer.join(60)
        writer.stop()
        assert writer.error is None
        assert writer.written.transactions + writer.written.rolled_back == 300
        with psycopg.connect(dsn) as connection:
            assert _count(connection, "orders") == len(shop.books.orders)
            for table in KEYS:
                offset = opened.records[table] + writer.written.records[table]
                assert writer.ledgers[table].offsets[-1] == offset


def test_a_failing_writer_says_why() -> None:
    shop = Shop(3)
    with running_server() as dsn:
        opened = open_shop(dsn, shop.opening())
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("DROP TABLE order_items")
        writer = Writer(dsn, opened, shop.transactions(), rate=100_000)
        writer.start()
        writer.join(60)
        assert isinstance(writer.error, psycopg.errors.UndefinedTable)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [("--seconds", "15"), ("--seconds", "30", "--rate", "3000")], ids=["usual", "fast"]
)
def test_the_demo_proves_itself_and_leaves_nothing(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    answer = proved_demo(tmp_path, *options)
    assert answer["events"] > 1000
    assert 0 < answer["freshness_p50_ms"] <= answer["freshness_p95_ms"]
    assert 0 < answer["seconds_to_first_row"] < answer["seconds_total"]
    assert not (tmp_path / "home").exists()


@pytest.mark.slow
def test_the_demo_is_fresh_at_a_thousand_rows_per_second(tmp_path: Path) -> None:
    answer = proved_demo(tmp_path, "--seconds", "30", "--rate", "1000")
    assert answer["events"] > 20_000
    assert answer["freshness_p95_ms"] <= 4000


def proved_demo(folder: Path, *options: str) -> dict[str, Any]:
    """Return the answer of a demo whose rows are all equal."""
    command = [sys.executable, "-m", "cdclake.cli.main", "demo", "--json", *options]
    environment = {**os.environ, "CDCLAKE_HOME": str(folder / "home")}
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["ok"]
    assert {table["table"] for table in answer["tables"]} == set(KEYS)
    assert all(t["missing"] == t["extra"] == t["different"] == 0 for t in answer["tables"])
    return answer


def _count(connection: "psycopg.Connection[tuple[int, ...]]", table: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
    assert row is not None
    return row[0]
