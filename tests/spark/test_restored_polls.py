"""Polls of a source that was restored: its rows replace those of the time that it lost."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from cdclake.control_objects import poll_name
from cdclake.jobs.control.progress import Progress
from tests.local.source_database import running_server
from tests.spark.polled_table import PolledTable

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with running_server() as server:
        yield f"{server}/postgres"


def test_a_new_epoch_reads_rows_that_are_older_than_the_last_poll(
    spark: SparkSession, dsn: str
) -> None:
    polled = PolledTable(spark, dsn, {"deletes": "none"})
    polled.run(f"INSERT INTO {polled.name} (id, v) VALUES (1, 'lost')")
    polled.poll()
    polled.run(f"UPDATE {polled.name} SET v = 'restored', at = '2020-01-01'")
    assert polled.poll() == 0
    Progress(epoch=2).save(polled.control)  # type: ignore[arg-type]
    assert polled.poll() == 1
    assert polled.rows() == polled.source_rows()


@pytest.mark.slow
def test_a_restored_source_with_lower_positions_still_brings_its_changes(
    spark: SparkSession, dsn: str
) -> None:
    polled = PolledTable(spark, dsn)
    polled.run(f"INSERT INTO {polled.name} (id, v) VALUES (1, 'a')")
    polled.poll()
    polled.run(f"UPDATE {polled.name} SET v = 'b', at = now()")
    polled.poll()
    ahead = put_ahead(polled)
    polled.run(f"UPDATE {polled.name} SET v = 'c', at = now()")
    assert polled.poll() == 1
    assert polled.progress().lsn == ahead + 1
    assert polled.rows() == polled.source_rows()


def put_ahead(polled: PolledTable) -> int:
    """Put the last poll far ahead of the source; return its LSN."""
    lsn = polled.progress().lsn + (1 << 40)
    ahead = replace(polled.progress(), lsn=lsn, source_lsn=lsn)
    polled.control.write(poll_name(polled.name), ahead.to_json())
    return ahead.lsn


@pytest.mark.slow
def test_a_poll_of_a_restored_source_wins_over_one_that_died(
    spark: SparkSession, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    polled = PolledTable(spark, dsn)
    polled.run(f"INSERT INTO {polled.name} (id, v) VALUES (1, 'a'), (2, 'a')")
    polled.poll()
    put_ahead(polled)
    polled.run(f"UPDATE {polled.name} SET v = 'b', at = now()")
    polled.poll_and_die(monkeypatch)
    polled.run(
        f"UPDATE {polled.name} SET v = 'c', at = now() WHERE id = 1",
        f"DELETE FROM {polled.name} WHERE id = 2",
    )
    assert polled.poll() == 2
    assert polled.rows() == polled.source_rows()


@pytest.mark.slow
def test_a_poll_in_a_new_epoch_is_below_the_later_changes_of_a_restored_source(
    spark: SparkSession, dsn: str
) -> None:
    polled = PolledTable(spark, dsn)
    polled.run(f"INSERT INTO {polled.name} (id, v) VALUES (1, 'a')")
    polled.poll()
    ahead = put_ahead(polled)
    Progress(epoch=2).save(polled.control)  # type: ignore[arg-type]
    polled.run(f"UPDATE {polled.name} SET v = 'b', at = now()")
    assert polled.poll() == 1
    assert polled.progress().lsn < ahead
    polled.run(f"UPDATE {polled.name} SET v = 'c', at = now()")
    put_ahead(polled)  # an LSN of the same epoch: the next poll is above it
    assert polled.poll() == 1
    assert polled.rows() == polled.source_rows()
