"""Readers that stream a changelog from Iceberg by snapshots, as users run them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.jobs.control.topic_state import TopicState
from cdclake.jobs.jvm.java import each
from cdclake.jobs.maintenance import actions
from cdclake.jobs.maintenance.actions import MaintainedTable, compact_files
from cdclake.jobs.stream.stamp_renewal import renew_changelog_stamp
from tests.spark.events import Engine

pytestmark = pytest.mark.spark


class Reader:
    """A consumer with a checkpoint; what it has received, by LSN."""

    def __init__(self, spark: SparkSession, table: str, folder: Path) -> None:
        self.spark, self.table, self.checkpoint = spark, table, str(folder / "checkpoint")
        self.options: dict[str, str] = {}
        self.received: list[int] = []

    def run(self) -> None:
        """Read what is there, as once a day with `Trigger.AvailableNow`."""
        rows = self.spark.readStream.format("iceberg").options(**self.options).load(self.table)
        query = (
            rows.writeStream.foreachBatch(self._take)
            .option("checkpointLocation", self.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        progress = query.lastProgress
        assert progress is not None
        self.ends_before_a_commit = progress["sources"][0]["endOffset"]["snapshot_id"] == -1

    def start_after(self, rows: DataFrame, snapshot: Any) -> None:
        """The documented start: a batch's rows of a snapshot, then the stream of those after it."""
        self._take(rows, 0)
        self.options = {"stream-from-timestamp": str(snapshot.timestampMillis() + 1)}

    def _take(self, rows: DataFrame, _: int) -> None:
        self.received += [row["cdc_lsn"] for row in rows.select("cdc_lsn").collect()]


@pytest.fixture
def engine(spark: SparkSession) -> Engine:
    return Engine(spark)


@pytest.fixture
def reader(engine: Engine, tmp_path: Path) -> Reader:
    return Reader(engine.spark, f"lake.cdc.{engine.table.changes}", tmp_path)


def append(engine: Engine, *lsns: int) -> None:
    for lsn in lsns:
        engine.run(engine.event("u", lsn, lsn, v=str(lsn)), apply_now=False)


def expire_all_but_newest(engine: Engine) -> None:
    engine.spark.sql(
        f"CALL lake.system.expire_snapshots(table => 'cdc.{engine.table.changes}',"
        f" older_than => timestamp'{datetime.now(UTC) + timedelta(days=1)}', retain_last => 1)"
    )


def snapshot_of(engine: Engine) -> Any:
    return engine.lake.load(engine.table.changes).currentSnapshot()


def test_a_stream_from_the_tables_start_has_every_row(engine: Engine, reader: Reader) -> None:
    append(engine, 10, 20, 30)
    reader.run()
    append(engine, 40)
    engine.run(engine.event("u", 40, 50), engine.event("u", 40, 50), apply_now=False)  # a repeat
    reader.run()
    engine.run(engine.event("u", 40, 50), offset=engine.next_offset - 1, apply_now=False)
    engine.run(engine.event("u", 41, 50), apply_now=False)  # sent again by a restarted connector
    reader.run()
    assert reader.received == [10, 20, 30, 40, 50]


@pytest.mark.slow
def test_a_commit_that_only_has_a_stamp_ends_no_stream(engine: Engine, reader: Reader) -> None:
    append(engine, 10)
    reader.run()
    engine.place.topic_id = "first"
    engine.stream().accept_topic(TopicState(id="second", first={0: 0}, end={0: 0}))
    lake, name, later = engine.lake, engine.table.changes, datetime.now(UTC) + timedelta(days=2)
    engine.spark.sql(
        f"CALL lake.system.rewrite_data_files(table => 'cdc.{name}',"
        " options => map('rewrite-all', 'true'))"
    )
    renew_changelog_stamp(lake, name, later)
    assert lake.stamped(name).is_current
    append(engine, 20)
    reader.run()
    operations = [snapshot.operation() for snapshot in each(lake.load(name).snapshots())]
    assert operations == ["append", "append", "replace", "append", "append"]
    assert reader.received == [10, 20]


@pytest.mark.slow
def test_a_compaction_brings_a_stream_no_row_again(
    engine: Engine, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "MIN_SMALL_FILES", 2)
    append(engine, 10, 20, 30)
    reader.run()
    append(engine, 40)
    table = MaintainedTable(
        engine.lake, engine.table, engine.table.changes, datetime.now(UTC), timedelta(days=90)
    )
    compact_files(table)
    assert snapshot_of(engine).operation() == "replace"
    append(engine, 50)
    reader.run()
    assert reader.received == [10, 20, 30, 40, 50]


@pytest.mark.slow  # by default streams from the table's start
def test_a_stream_that_has_read_no_commit_may_lose_rows_and_says_so(
    engine: Engine, reader: Reader
) -> None:
    """As docs/how-to/stream-a-changelog.md warns."""
    append(engine, 10)
    snapshot = snapshot_of(engine)
    reader.start_after(engine.lake.read(engine.table.changes, snapshot.snapshotId()), snapshot)
    reader.run()
    assert reader.ends_before_a_commit
    append(engine, 20, 30)
    expire_all_but_newest(engine)
    append(engine, 40)
    reader.run()
    assert reader.received == [10, 30, 40]  # without 20
    assert not reader.ends_before_a_commit


@pytest.mark.slow  # by default streams from the table's start
def test_a_stream_that_starts_late_lacks_rows_unless_it_reads_a_snapshot_first(
    engine: Engine, reader: Reader, tmp_path: Path
) -> None:
    append(engine, 10, 20)
    expire_all_but_newest(engine)
    append(engine, 30)
    reader.run()
    assert reader.received == [20, 30]  # without an error: the reason for the documented start
    right = Reader(engine.spark, reader.table, tmp_path / "right")
    snapshot = snapshot_of(engine)
    right.start_after(engine.lake.read(engine.table.changes, snapshot.snapshotId()), snapshot)
    append(engine, 40)
    right.run()
    append(engine, 50)
    right.run()
    assert sorted(right.received) == [10, 20, 30, 40, 50]


@pytest.mark.slow  # by default streams from the table's start
def test_a_stream_that_was_down_too_long_fails_and_recovers_by_time_of_ingestion(
    engine: Engine, reader: Reader, tmp_path: Path
) -> None:
    append(engine, 10, 20)
    reader.run()
    through = engine.lake.read(engine.table.changes).agg(F.max(naming.INGESTED_AT)).collect()[0][0]
    append(engine, 30, 40)
    expire_all_but_newest(engine)
    with pytest.raises(StreamingQueryException, match="expired"):
        reader.run()
    snapshot = snapshot_of(engine)
    missed = engine.lake.read(engine.table.changes, snapshot.snapshotId()).where(
        F.col(naming.INGESTED_AT) > through
    )
    reader.checkpoint = str(tmp_path / "again")
    reader.start_after(missed, snapshot)
    append(engine, 50)
    reader.run()
    assert sorted(reader.received) == [10, 20, 30, 40, 50]
