"""Polls of a source that refuses functions of the WAL, as Aurora does. A function stands in."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from cdclake.errors import InputError, TableError
from cdclake.jobs.poll.polled_snapshot import PolledSnapshot, SourceLogin, polled_snapshot
from cdclake.postgres import poll_queries
from tests.local.source_database import running_server
from tests.spark.polled_table import PolledTable

pytestmark = pytest.mark.spark

REFUSED = """
CREATE OR REPLACE FUNCTION public.refused(code text) RETURNS timestamptz LANGUAGE plpgsql AS
$$ BEGIN RAISE 'is currently not supported for Aurora' USING ERRCODE = code; END $$
"""
READS_CHANGES = {"sweep_every": "rate(1 day)"}


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with running_server() as server:
        yield f"{server}/postgres"


@pytest.fixture(params=["0A000", "55000"])
def polled(
    spark: SparkSession, dsn: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> PolledTable:
    found = PolledTable(spark, dsn, READS_CHANGES)
    found.run(REFUSED, f"INSERT INTO {found.name} (id, v) VALUES (1, 'a')")
    monkeypatch.setattr(poll_queries, "LSN", f"SELECT public.refused('{request.param}')")
    return found


def snapshot_of(polled: PolledTable, *, needs_lsn: bool = False) -> PolledSnapshot:
    login = SourceLogin(dsn=polled.dsn, salt="")
    with polled_snapshot(polled.spark, login, polled.table, needs_lsn=needs_lsn) as snapshot:
        return snapshot


def test_the_position_is_needed_only_next_to_events_from_the_wal(polled: PolledTable) -> None:
    assert snapshot_of(polled).lsn == 0
    with pytest.raises(InputError, match="not supported for Aurora"):
        snapshot_of(polled, needs_lsn=True)


@pytest.mark.slow
@pytest.mark.parametrize("polled", ["0A000"], indirect=True)
def test_rows_of_later_polls_win_without_a_position(polled: PolledTable) -> None:
    assert polled.poll() == 1
    polled.run(f"UPDATE {polled.name} SET v = 'b', at = now()")
    assert polled.poll() == 1
    assert polled.rows() == polled.source_rows()


@pytest.mark.parametrize("polled", ["0A000"], indirect=True)
def test_a_reader_needs_a_declared_overlap(
    polled: PolledTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll_queries, "SESSION", "SELECT true, true")
    monkeypatch.setattr(poll_queries, "REPLAYED", "public.refused('0A000')")
    with pytest.raises(TableError, match="write `overlap_minutes:`"):
        snapshot_of(polled)
    polling = replace(polled.table.poll, overlap_minutes=20)
    polled.plan = replace(polled.plan, polled=(replace(polled.table, polling=polling),))
    snapshot = snapshot_of(polled)
    assert snapshot.bound is not None
    assert 0 <= snapshot.read_at - snapshot.bound - 20 * 60_000_000 < 10_000_000
