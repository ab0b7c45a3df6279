"""A collapse of a changelog that Firehose writes has no reader read the collapsed days again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrameWriterV2, SparkSession

from cdclake import naming
from cdclake.control_objects import SourceProgress
from cdclake.iceberg.collapse import complete_before
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.apply.changelog_commits import commits_since, committed_sequence
from cdclake.jobs.apply.rebuilt_state import applied_through
from cdclake.jobs.derived.source_snapshot import open_source
from cdclake.jobs.maintenance.actions import MaintainedTable
from cdclake.jobs.publish.copied_rows import StateSnapshot
from cdclake.jobs.publish.copy_stamp import CopyStamp
from tests.spark.events import plan_of
from tests.spark.firehose_log import FirehoseLog
from tests.spark.test_collapse import MICROS, NOW, OLD, collapse
from tests.spark.test_firehose_log import rows

pytestmark = pytest.mark.spark

HOUR = 3_600 * MICROS
OLD_AT, NOW_AT = (int(moment.timestamp()) * MICROS for moment in (OLD, NOW))


@pytest.fixture
def log(spark: SparkSession) -> FirehoseLog:
    return FirehoseLog(spark, plan_of())


def commit(log: FirehoseLog, at: int, *events: dict[str, Any]) -> None:
    """Commit rows of the events that were ingested at that time."""
    log.commit([{**row, naming.INGESTED_AT: at} for row in rows(log, *events)])


def filled(log: FirehoseLog) -> None:
    """Have old rows and a new one, all applied."""
    e = log.engine.event
    commit(log, OLD_AT, *(e("u", 10 + n, 10 + n, v=f"{n}") for n in range(3)))
    commit(log, OLD_AT, e("c", 20, 20, id=2, v="b"))
    commit(log, NOW_AT, e("u", 30, 30, v="new"))
    log.apply()


def unread(log: FirehoseLog) -> int | None:
    """The time after which a reader that has what the state has must read."""
    applied = applied_through(log.engine.lake, log.table)
    return commits_since(log.engine.lake, log.table, applied.sequence).after


def compact_old_days(log: FirehoseLog) -> None:
    """Write the collapsed files again, which gives them a greater sequence number, too."""
    lake, table = log.engine.lake, log.table
    before = committed_sequence(lake, table)
    old = f"{naming.INGESTED_AT} < TIMESTAMP '{NOW.date()} 00:00:00+00:00'"
    changelog = MaintainedTable(lake, table, table.changes, NOW, timedelta(days=90))
    changelog.call(
        "rewrite_data_files", where=SPARK.text(old), options="map('rewrite-all', 'true')"
    )
    assert committed_sequence(lake, table) > before


def test_an_apply_after_a_collapse_reads_no_collapsed_row(log: FirehoseLog) -> None:
    lake, table, e = log.engine.lake, log.table, log.engine.event
    filled(log)
    before = [(1, "new", None), (2, "b", None)]
    collapse(log.engine)
    assert [row["cdc_lsn"] for row in log.engine.log()] == [12, 20, 30]
    compact_old_days(log)
    assert applied_through(lake, table).sequence < committed_sequence(lake, table)
    assert unread(log) is None
    assert log.current() == before
    assert log.apply() == 0
    assert applied_through(lake, table).sequence == committed_sequence(lake, table)
    commit(log, NOW_AT - HOUR, e("u", 40, 40, id=2, v="c"))  # late by an hour
    commit(log, NOW_AT + HOUR, e("u", 13, 13, id=3, v="redriven"))  # with a new time of ingestion
    assert unread(log) == NOW_AT - HOUR - 1
    after = [(1, "new", None), (2, "c", None), (3, "redriven", None)]
    assert log.current() == after
    assert log.apply() == 3, "the row ingested since the late one is read again"
    assert log.state() == after
    log.rebuild()
    assert log.state() == after


@pytest.mark.slow  # by default one that was applied
def test_a_row_that_was_not_applied_when_it_collapsed_is_applied(log: FirehoseLog) -> None:
    """It was late, and the state that collapses allow for has the time of newer rows."""
    filled(log)
    e = log.engine.event
    commit(log, OLD_AT, e("u", 21, 21, id=2, v="late"), e("c", 22, 22, id=3, v="late"))
    collapse(log.engine)
    assert [row["cdc_lsn"] for row in log.engine.log()] == [12, 21, 22, 30]
    after = unread(log)
    assert after is not None and after < OLD_AT
    expected = [(1, "new", None), (2, "late", None), (3, "late", None)]
    assert log.current() == expected
    log.apply()
    assert log.state() == expected
    assert unread(log) is None


@pytest.mark.slow
def test_a_row_that_comes_while_days_collapse_is_applied(
    log: FirehoseLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collapse fails, and the next one is not complete for who has not read the row."""
    filled(log)
    overwrite = DataFrameWriterV2.overwrite

    def overtaken(writer: DataFrameWriterV2, condition: Any) -> None:
        commit(log, OLD_AT, log.engine.event("u", 21, 21, id=2, v="late"))
        overwrite(writer, condition)

    with monkeypatch.context() as patched, pytest.raises(Exception, match="conflicting"):
        patched.setattr(DataFrameWriterV2, "overwrite", overtaken)
        collapse(log.engine)
    properties = log.engine.lake.load(log.table.changes).properties()
    assert naming.COLLAPSED_SEQUENCE in properties, "a reader may not count on it yet"
    assert complete_before(properties, 1_000) is None
    collapse(log.engine)
    assert [row["cdc_lsn"] for row in log.engine.log()] == [12, 21, 30]
    after = unread(log)
    assert after is not None and after < OLD_AT
    log.apply()
    assert log.state() == log.current() == [(1, "new", None), (2, "late", None)]


@pytest.mark.slow
def test_derived_tables_and_copies_skip_collapsed_rows(log: FirehoseLog) -> None:
    lake, table, e = log.engine.lake, log.table, log.engine.event
    filled(log)
    refreshed = open_source(lake, table).progress
    applied = applied_through(lake, table)
    copied = CopyStamp(applied.sequence, applied.floor, "", "")
    collapse(log.engine)
    commit(log, NOW_AT + HOUR, e("u", 40, 40, id=2, v="c"))
    assert keys(log, refreshed) == [2]
    behind = SourceProgress(1, refreshed.floor, refreshed.rebuilt)
    assert open_source(lake, table).changed_keys(behind) is None
    log.apply()
    source = StateSnapshot.open(lake, table)
    assert source is not None
    since = source.since(copied)
    assert since is not None and [row["id"] for row in since.collect()] == [2]


def keys(log: FirehoseLog, since: SourceProgress) -> list[int]:
    """The keys that a derived table reads again."""
    changed = open_source(log.engine.lake, log.table).changed_keys(since)
    assert changed is not None
    return sorted(row["id"] for row in changed.collect())
