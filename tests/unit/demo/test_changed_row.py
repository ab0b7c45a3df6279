"""The demo's example is the row whose status changed last and that still exists."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from cdclake.local.demo.changed_row import in_the_lake


@pytest.fixture
def session() -> duckdb.DuckDBPyConnection:
    session = duckdb.connect()
    session.execute(
        "CREATE TABLE orders_history (order_id bigint, cdc_op text, status text,"
        " total decimal(12,2), cdc_position text, cdc_committed_at timestamptz)"
    )
    session.execute(
        "CREATE TABLE orders_current (order_id bigint, status text, total decimal(12,2))"
    )
    return session


def event(session: Any, order: int, op: str, status: str | None, position: int) -> None:
    session.execute(
        "INSERT INTO orders_history VALUES (?, ?, ?, 12.5, ?, make_timestamptz(?))",
        [order, op, status, f"{position:04}", position],
    )


def test_the_newest_changed_row_is_shown_with_its_events(session) -> None:
    event(session, 1, "c", "placed", 10)
    event(session, 1, "u", "paid", 20)
    event(session, 2, "r", "placed", 5)
    event(session, 2, "u", "paid", 30)  # the newest change, of a row that was deleted
    event(session, 2, "d", None, 40)
    event(session, 3, "r", "packed", 6)
    event(session, 3, "u", "packed", 50)  # changed another column
    session.execute("INSERT INTO orders_current VALUES (1, 'paid', 12.5), (3, 'packed', 12.5)")
    assert in_the_lake(session) == {
        "table": "orders",
        "key": {"order_id": 1},
        "events": [
            {"op": "insert", "status": "placed", "total": "12.50", "committed_us": 10},
            {"op": "update", "status": "paid", "total": "12.50", "committed_us": 20},
        ],
        "lake": {"status": "paid", "total": "12.50"},
    }


def test_a_run_without_a_changed_row_shows_none(session) -> None:
    event(session, 1, "c", "placed", 10)
    session.execute("INSERT INTO orders_current VALUES (1, 'placed', 12.5)")
    assert in_the_lake(session) is None
