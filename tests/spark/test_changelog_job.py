"""The job of a batch: its tasks, its memory, and the files that it writes."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.jobs.control.table_life import Held
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.jvm.java import each
from cdclake.jobs.stream import changelog_job
from cdclake.jobs.stream.changelog_job import run_changelog_job
from tests.local.repeated_work import repeated
from tests.spark.events import RECORD, Engine
from tests.spark.fed_stream import Stream
from tests.spark.large_rows import large_records

pytestmark = pytest.mark.spark


@pytest.fixture
def engine(spark: SparkSession) -> Engine:
    return Engine(spark)


def operations(engine: Engine, table: str) -> list[str]:
    return [snapshot.operation() for snapshot in each(engine.lake.load(table).snapshots())]


def test_a_batch_has_one_job_with_as_many_tasks_as_cores(stream: Stream) -> None:
    """Each task in Python costs about 0.1 CPU seconds: never one per table, topic or partition."""
    spark, one, two = stream.spark, stream.one, stream.two
    sent = stream.records(
        *((e, e.event("c", n, n, id=n, v="a")) for n in range(20) for e in (one, two))
    )
    records = spark.createDataFrame(sent, RECORD).repartition(7)
    targets = {e.table.topic: e.stream().target(e.stream().read_changelog()) for e in (one, two)}
    quarantine = TableHandle(one.lake, naming.QUARANTINE).target()
    spark.sparkContext.setJobGroup("the job", "")
    try:
        decoded = run_changelog_job(records, stream.plan, targets, quarantine)
        status = spark.sparkContext.statusTracker()
        jobs = [status.getJobInfo(job) for job in status.getJobIdsForGroup("the job")]
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    last = [status.getStageInfo(max(job.stageIds)) for job in jobs if job is not None]
    assert [stage.numTasks for stage in last if stage] == [spark.sparkContext.defaultParallelism]
    assert {t: sum(p.accepted for p in s.parts) for t, s in decoded.shares.items()} == {
        one.table.topic: 20,
        two.table.topic: 20,
    }
    assert decoded.ranges[one.table.topic] == {0: (0, 20)}


@pytest.fixture
def stream(spark: SparkSession) -> Stream:
    return Stream(spark)


def test_a_commit_of_events_is_an_append(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, v="a"), e("u", 20, 20, v="b"))
    engine.run(e("d", 30, 30))
    engine.run(e("c", 5, 40, epoch=2, v="c"), epoch=2)  # with a sweep
    engine.run(e("u", 30, 50, epoch=2, v="d"), e("u", 30, 50, epoch=2, v="d"), epoch=2)  # a repeat
    assert operations(engine, engine.table.changes) == ["append"] * 4
    assert [row["cdc_lsn"] for row in engine.log() if row["cdc_op"] != "t"] == [10, 20, 30, 40, 50]


@pytest.mark.slow
def test_large_values_are_decoded_by_a_job_of_their_own(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changelog_job, "LARGE_VALUE_BYTES", 400)
    monkeypatch.setattr(changelog_job, "ARROW_BYTES", 2000)
    seen: list[str] = []
    arrow_rows = changelog_job._arrow_rows

    def watched(spark: SparkSession, rows: int) -> Any:
        seen.append(str(rows))
        return arrow_rows(spark, rows)

    monkeypatch.setattr(changelog_job, "_arrow_rows", watched)
    e = engine.event
    sizes = {1: 10, 2: 900, 3: 20, 4: 700}
    engine.run(*(e("c", n, n, id=n, v="x" * size) for n, size in sizes.items()))
    assert {id: len(v) for id, (v, _) in engine.state().items()} == sizes
    assert seen == ["1"]
    engine.run(e("u", 10, 10, id=2, v="small"), e("d", 11, 11, id=4))
    assert seen == ["1"]
    assert engine.state()[2] == ("small", None)


def test_a_task_that_fails_for_one_table_holds_back_that_table_alone(
    stream: Stream, tmp_path: Path
) -> None:
    one, two = stream.one, stream.two
    stream.run()
    blocked = tmp_path / "a file where a folder should be"
    blocked.write_text("")
    one.spark.sql(
        f"ALTER TABLE lake.cdc.{one.table.changes} SET TBLPROPERTIES"
        f" ('write.data.path'='{blocked}/data')"
    )
    sent = stream.records(
        (one, one.event("c", 10, 10, v="a")), (two, two.event("c", 11, 11, v="b"))
    )
    stream.start()
    stream.run(*sent)
    mine = stream.progress().table(one.table.name)
    assert not mine.is_streaming and isinstance(mine.life, Held)
    assert "NotADirectoryError" in str(mine.last_error)
    assert (one.log(), two.state()) == ([], {1: ("b", None)})
    assert stream.progress().table(two.table.name).is_streaming


@pytest.mark.slow
def test_a_gigabyte_of_large_rows_is_held_in_parts(engine: Engine) -> None:
    """1,000 rows of 1 MB: a Python worker holds a bounded part of them."""
    with watched_workers() as peaks:
        engine.stream().run(large_records(engine, 1000), {0: (0, 1000)}, epoch=1)
    assert engine.lake.read(engine.table.changes).where("length(v) = 1000000").count() == 1000
    assert 0 < max(peaks) < 1000 * MEBIBYTE  # 772 measured; half of the rows alone are 500


MEBIBYTE = 1 << 20


@contextmanager
def watched_workers() -> Iterator[list[int]]:
    """Sample the resident memory of Spark's Python workers, the largest of each sample."""
    peaks: list[int] = []

    def sample() -> None:
        sizes = [0]
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if process.name().startswith("python"):
                    sizes.append(process.memory_info().rss)
        peaks.append(max(sizes))

    with repeated(sample, 0.05):
        yield peaks
