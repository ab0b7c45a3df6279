"""Numbers of quarantined events of each table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import duckdb

from cdclake.debezium import refusals
from cdclake.jobs.reader.quarantine_counts import quarantined_events, withheld_events
from cdclake.plan import Column


def test_withheld_events_are_counted_among_the_quarantined_ones() -> None:
    broken = refusals.broken_rule("in(s)", Column(source="s", name="s", type="text"), "odd")
    kept = [("a", 1, broken), ("a", 1, broken), ("a", 2, broken), ("a", 3, refusals.NULL_KEY),
            ("b", 4, refusals.NO_ROW), (None, 5, refusals.UNREADABLE_VALUE)]  # fmt: skip
    with duckdb.connect() as lake:
        lake.execute(
            'CREATE TABLE cdclake_quarantine ("table" VARCHAR, "offset" BIGINT, reason VARCHAR,'
            " topic VARCHAR DEFAULT 't', \"partition\" INTEGER DEFAULT 0)"
        )
        lake.executemany(
            'INSERT INTO cdclake_quarantine ("table", "offset", reason) VALUES (?, ?, ?)', kept
        )

        @contextmanager
        def opened(tables: Any, plain: Any) -> Iterator[duckdb.DuckDBPyConnection]:
            yield lake

        reader: Any = SimpleNamespace(open=opened)
        assert quarantined_events(reader) == {"a": 3, "b": 1}
        assert withheld_events(reader) == {"a": 2}
