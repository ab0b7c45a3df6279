"""What the demo measures is read from the logs' rows and the stamps of their snapshots."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from cdclake import naming
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.reader.catalog import CatalogTable, TableSnapshot
from cdclake.local.demo import measure as measuring
from cdclake.local.demo.freshness import Freshness
from cdclake.local.demo.measure import EventCounts, Measured, measure
from tests.spark.events import plan_of

SECOND = 1_000_000


def snapshot(number: int, committed_ms: int, stamp: str | None) -> TableSnapshot:
    return TableSnapshot(
        id=number, parent=None, committed_ms=committed_ms, sequence=number, manifests="",
        summary={} if stamp is None else {naming.STAMP_PROPERTY: stamp}, columns=(),
    )  # fmt: skip


def log_of(name: str, *snapshots: TableSnapshot) -> CatalogTable:
    return CatalogTable(
        name=name, location="", columns=(), current=None, history=(), tagged={},
        snapshots={each.id: each for each in snapshots},
    )  # fmt: skip


def lake_of(monkeypatch: pytest.MonkeyPatch, *snapshots: TableSnapshot) -> Any:
    """A lake whose log has two appends of changes, and one of a snapshot's rows."""
    plan = plan_of()
    [table] = plan.tables
    session = duckdb.connect()
    session.execute(f'CREATE SCHEMA "{plan.lake_database}"')
    session.execute(
        f'CREATE TABLE "{plan.lake_database}"."{table.changes}" (cdc_op text,'
        " cdc_ingested_at timestamptz, cdc_committed_at timestamptz, cdc_partition integer)"
    )
    rows = [("r", 1, 0, 0), ("c", 4, 2, 0), ("c", 4, 3, 0), ("u", 9, 5, 0), ("d", 9, 5, 0)]
    rows += [("d", 9, 0, -1)]  # made by the lake itself: nothing of the source's
    for op, ingested, committed, partition in rows:
        session.execute(
            f'INSERT INTO "{plan.lake_database}"."{table.changes}"'
            " VALUES (?, make_timestamptz(?), make_timestamptz(?), ?)",
            [op, ingested * SECOND, committed * SECOND, partition],
        )
    log = log_of(table.changes, *snapshots)
    reader = SimpleNamespace(
        open=lambda _tables: nullcontext(session), catalog=SimpleNamespace(load=lambda _name: log)
    )
    monkeypatch.setattr(measuring, "lake_reader", lambda _lake: reader)
    return SimpleNamespace(plan=plan)


def test_a_streamed_run_in_figures(monkeypatch) -> None:
    first, second, third = (
        ChangesStamp(ingested_through=at * SECOND).to_json() for at in (1, 4, 9)
    )
    lake = lake_of(
        monkeypatch,
        snapshot(1, 1_500, first),
        snapshot(2, 6_000, second),
        snapshot(3, 10_000, third),
        snapshot(4, 20_000, third),  # a compaction carries the stamp on
        snapshot(5, 30_000, None),
    )

    measured = measure(lake)

    [table] = lake.plan.tables
    assert measured.seen == {table.name: EventCounts(inserts=2, updates=1, deletes=1)}
    assert (measured.first_row_ms, measured.last_row_ms) == (1_500, 10_000)
    # Committed at 2, 3, 5 and 5 s; seen from 6, 6, 10 and 10 s on.
    assert measured.freshness.rows == 4
    assert (measured.freshness.p50_ms, measured.freshness.p95_ms) == (4_000, 5_000)


def test_a_row_of_no_stamped_append_is_not_passed_over(monkeypatch) -> None:
    with pytest.raises(KeyError):
        measure(lake_of(monkeypatch, snapshot(1, 1_500, None)))


def test_figures_of_a_run_are_those_that_the_command_reports() -> None:
    found = Measured({}, Freshness(90, 1_200, 2_500), first_row_ms=30_000, last_row_ms=70_000)
    assert found.figures(started_at=10.0, opened_at=40.0) == {
        "events": 90,
        "events_per_s": 3.0,
        "freshness_p50_ms": 1_200,
        "freshness_p95_ms": 2_500,
        "seconds_to_first_row": 20.0,
    }


def test_figures_are_null_where_nothing_was_streamed() -> None:
    loaded = Measured({}, Freshness(0, None, None), first_row_ms=30_000, last_row_ms=30_000)
    assert loaded.figures(started_at=10.0, opened_at=40.0) == {
        "events": 0,
        "events_per_s": None,
        "freshness_p50_ms": None,
        "freshness_p95_ms": None,
        "seconds_to_first_row": 20.0,
    }
    nothing = Measured({}, Freshness(0, None, None), None, None).figures(1.0, 2.0)
    assert nothing["events_per_s"] is None and nothing["seconds_to_first_row"] is None
