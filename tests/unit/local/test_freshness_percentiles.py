"""Percentiles of freshness over the streamed rows of the newest hour of commits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.reader.catalog import CatalogTable, TableSnapshot
from cdclake.local.reader.freshness_percentiles import freshness_percentiles
from cdclake.naming import STAMP_PROPERTY
from cdclake.plan import Table

TABLE = Table(schema="s", table="t", name="t", topic="t", key=(), columns=())
HOUR_S = 3600


@pytest.fixture
def session() -> Iterator[Any]:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t_changes (cdc_committed_at timestamp, cdc_ingested_at timestamp,"
            " cdc_phase int, cdc_partition int)"
        )
        yield connection


def _insert(session: Any, committed_s: float, ingested_s: float, phase: int = 1) -> None:
    session.execute(
        "INSERT INTO t_changes VALUES (make_timestamp(?), make_timestamp(?), ?, 0)",
        [int(committed_s * 1e6), int(ingested_s * 1e6), phase],
    )


def _log(*commits: tuple[int, float]) -> CatalogTable:
    """Return a changelog with these commits: seconds of ingestion and of the commit."""
    snapshots = {
        number: TableSnapshot(
            id=number, parent=None, committed_ms=int(shown_s * 1000), sequence=number,
            manifests="", columns=(),
            summary={STAMP_PROPERTY: ChangesStamp(ingested_through=ingested * 10**6).to_json()},
        )
        for number, (ingested, shown_s) in enumerate(commits)
    }  # fmt: skip
    return CatalogTable(name="t_changes", location="", columns=(), snapshots=snapshots,
                        current=None, history=(), tagged={})  # fmt: skip


def test_percentiles_are_over_rows(session: Any) -> None:
    for number in range(20):
        _insert(session, 9_999 - number, 10_000)
    found = freshness_percentiles(session, _log((10_000, 10_001)), TABLE)
    assert found == {"freshness_p50_s": 11.0, "freshness_p95_s": 20.0}


def test_rows_of_a_snapshot_and_of_older_commits_do_not_count(session: Any) -> None:
    _insert(session, 1_000, 10_000)
    _insert(session, 0, 10_000, phase=0)
    _insert(session, 20_000, 20_000 + HOUR_S)
    _insert(session, 20_000, 20_000 + HOUR_S, phase=0)
    log = _log((10_000, 10_001), (20_000 + HOUR_S, 20_002 + HOUR_S))
    assert freshness_percentiles(session, log, TABLE)["freshness_p95_s"] == 2.0 + HOUR_S


def test_without_streamed_rows_or_stamps_they_are_unknown(session: Any) -> None:
    unknown = {"freshness_p50_s": None, "freshness_p95_s": None}
    assert freshness_percentiles(session, _log(), TABLE) == unknown
    _insert(session, 1_000, 10_000, phase=0)
    assert freshness_percentiles(session, _log((10_000, 10_001)), TABLE) == unknown
