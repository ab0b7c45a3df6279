"""Readers that stream a changelog from Iceberg by snapshots, with the code of the page."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from cdclake import naming
from cdclake.jobs.control.topic_state import TopicState
from cdclake.jobs.jvm.java import each
from cdclake.jobs.maintenance import actions
from cdclake.jobs.maintenance.actions import MaintainedTable, compact_files
from cdclake.jobs.stream.stamp_renewal import renew_changelog_stamp
from tests.spark.events import Engine
from tests.spark.shown_code import shown_code

pytestmark = pytest.mark.spark
PAGE = "how-to/stream-a-changelog.md"


class Reader:
    """A consumer with a checkpoint; what it has received, by LSN."""

    def __init__(self, spark: SparkSession, table: str, folder: Path) -> None:
        self.spark, self.table, self.checkpoint = spark, table, str(folder / "checkpoint")
        self.options: dict[str, str] = {}  # further ones than the page's
        self.received: list[int] = []
        self._names: dict[str, Any] = {"spark": spark}
        self._loading = shown_code(PAGE, "changes = ", table)

    def run(self) -> None:
        """Read what is there, as once a day with `Trigger.AvailableNow`."""
        query = self.begin(availableNow=True)
        query.awaitTermination(120)
        shown: dict[str, Any] = {"query": query}
        exec(shown_code(PAGE, "ended_before_a_commit"), shown)
        self.ends_before_a_commit = shown["ended_before_a_commit"]

    def begin(self, **trigger: Any) -> StreamingQuery:
        """Begin to read, from the checkpoint if there is one."""
        loading = self._loading.replace('"iceberg")', '"iceberg").options(**options)')
        names = self._names | {"options": self.options}
        exec(loading, names)
        rows: DataFrame = names["changes"]
        writing = rows.writeStream.foreachBatch(self._take)
        return writing.option("checkpointLocation", self.checkpoint).trigger(**trigger).start()

    def start_with_a_snapshot(
        self, selected: Callable[[DataFrame], DataFrame] = lambda rows: rows
    ) -> None:
        """Write a snapshot's rows as documented, to stream afterwards what follows it."""
        code = shown_code(PAGE, "table = ", self.table)
        self._names["write"] = lambda rows: self._take(selected(rows), 0)
        exec(code, self._names)
        self._loading = code.splitlines()[-1]

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


def compact(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "MIN_SMALL_FILES", 2)
    changes, now = engine.table.changes, datetime.now(UTC)
    compact_files(MaintainedTable(engine.lake, engine.table, changes, now, timedelta(days=90)))


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
    append(engine, 10, 20, 30)
    reader.run()
    append(engine, 40)
    compact(engine, monkeypatch)
    assert snapshot_of(engine).operation() == "replace"
    append(engine, 50)
    reader.run()
    assert reader.received == [10, 20, 30, 40, 50]


@pytest.mark.slow  # by default streams that end
def test_a_running_stream_has_each_row_once(
    engine: Engine, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits, a compaction and a thinning arrive while it runs, and while it is restarted."""
    append(engine, 10, 20)
    reader.start_with_a_snapshot()
    for lsn in (30, 70):
        query = reader.begin(processingTime="1 second")
        try:
            append(engine, lsn, lsn + 10)
            compact(engine, monkeypatch)
            append(engine, lsn + 20)
            query.processAllAvailable()
            expire_all_but_newest(engine)
            append(engine, lsn + 30)
            query.processAllAvailable()
        finally:
            query.stop()
    assert query.exception() is None
    assert sorted(reader.received) == list(range(10, 110, 10))


@pytest.mark.slow  # by default streams from the table's start
def test_a_stream_that_has_read_no_commit_may_lose_rows_and_says_so(
    engine: Engine, reader: Reader
) -> None:
    """As docs/how-to/stream-a-changelog.md warns."""
    append(engine, 10)
    reader.start_with_a_snapshot()
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
    right.start_with_a_snapshot()
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
    reader.checkpoint = str(tmp_path / "again")
    reader.start_with_a_snapshot(lambda rows: rows.where(F.col(naming.INGESTED_AT) > through))
    append(engine, 50)
    reader.run()
    assert sorted(reader.received) == [10, 20, 30, 40, 50]
