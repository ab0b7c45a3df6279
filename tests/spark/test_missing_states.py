"""A state that was dropped: `rebuild_tables` creates it from its changelog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from cdclake.control_objects import PROGRESS
from cdclake.debezium.position import epoch_start
from cdclake.errors import TableError
from cdclake.iceberg.schemas import key_text
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.iceberg.error_policy import hold_reason
from cdclake.jobs.rebuild_tables import rebuild_table
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.local.aws.aws_server import DurableAws
from tests.spark.events import Engine, FreeLeases, MemoryStore, plan_of
from tests.spark.firehose_log import FirehoseLog
from tests.spark.glue_catalog import glue_session, serving
from tests.spark.test_columns import ID, MAIL, declare, event, table_of
from tests.spark.test_firehose_log import rows

pytestmark = pytest.mark.spark


def drop(engine: Engine, name: str) -> None:
    engine.spark.sql(f"DROP TABLE {engine.lake.qualified(name)}")


def job_of(engine: Engine, store: Any = None) -> TableJob:
    store = MemoryStore() if store is None else store
    return TableJob(engine.plan, engine.lake, FreeLeases(), store, named=True)


def layout(engine: Engine) -> tuple[str, dict[str, str]]:
    """Partitioning and properties of the state, without what its commits set."""
    loaded = engine.lake.load(engine.table.name)
    ours = {n: v for n, v in loaded.properties().items() if n.startswith(("cdclake.", "write."))}
    return str(loaded.spec()), ours


def test_a_dropped_state_is_rebuilt_as_the_stream_had_created_it(spark: SparkSession) -> None:
    engine = Engine(spark, plan_of(partition_by=("bucket(4, id)",)))
    e = engine.event
    engine.run(e("c", 10, 10, v="a"), e("c", 10, 11, id=2, v="b"), e("d", 20, 20, id=2))
    created = layout(engine)
    drop(engine, engine.table.name)
    with pytest.raises(AnalysisException) as failed:
        engine.run(e("c", 30, 30, id=3, v="c"))
    assert "does not find the table" in (hold_reason(engine.table.name, failed.value) or "")
    assert rebuild_table(job_of(engine), engine.table) == 3
    assert engine.state() == {1: ("a", None), 3: ("c", None)}
    assert layout(engine) == created
    assert created[1]["cdclake.key"] == key_text(engine.table)
    engine.run(e("u", 40, 40, v="d"))
    assert engine.state() == {1: ("d", None), 3: ("c", None)}


@pytest.mark.slow
def test_a_stream_that_knew_the_dropped_state_goes_on_with_the_new_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the former table's files and stamp: its next commit must not bring them back."""
    with serving(DurableAws(tmp_path)) as url:
        engine = Engine(glue_session(spark, url))
        e, stream = engine.event, engine.stream()
        monkeypatch.setattr(engine, "stream", lambda: stream)
        engine.run(e("c", 10, 10, v="a"), e("c", 10, 11, id=2, v="b"))
        assert len(engine.state()) == 2
        drop(engine, engine.table.name)
        rebuild_table(job_of(engine), engine.table)
        with pytest.raises(Py4JJavaError) as failed:
            engine.run(e("u", 20, 20, v="c"))
        assert "Table UUID does not match" in (hold_reason(engine.table.name, failed.value) or "")
        assert stream.apply()
        assert engine.state() == {1: ("c", None), 2: ("b", None)}


def test_no_state_is_created_without_a_changelog(spark: SparkSession) -> None:
    engine = Engine(spark)
    for name in engine.table.stored:
        drop(engine, name)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        rebuild_table(job_of(engine), engine.table)
    assert not engine.lake.exists(engine.table.name)


def test_no_state_is_created_from_a_changelog_without_a_stamp(spark: SparkSession) -> None:
    """Without a stamp, a rebuild cannot know the rows that it may apply."""
    written, engine = Engine(spark), Engine(spark)
    written.run(written.event("c", 10, 10, v="a"))
    copied = engine.lake.read(written.table.changes)
    copied.writeTo(engine.lake.qualified(engine.table.changes)).append()
    drop(engine, engine.table.name)
    with pytest.raises(TableError, match=r"no snapshot of .* has a stamp"):
        rebuild_table(job_of(engine), engine.table)
    assert not engine.lake.exists(engine.table.name)


def test_no_state_is_created_under_another_plan_than_the_changelogs(spark: SparkSession) -> None:
    """The stream would have to change it, and a job with this plan could not."""
    engine = table_of(spark)
    engine.run(event(engine, "c", 10, {}))
    job, old = job_of(engine), engine.table
    declare(engine, MAIL)
    drop(engine, old.name)
    with pytest.raises(TableError, match="columns of this job's plan: mail"):
        rebuild_table(job, old)
    assert not engine.lake.exists(old.name)
    assert rebuild_table(job_of(engine), engine.table) == 1


def test_a_dropped_state_of_delivered_rows_has_no_row_that_a_snapshot_replaced(
    spark: SparkSession,
) -> None:
    """The position of the snapshot was in the stamp alone, and is in the stream's progress."""
    log = FirehoseLog(spark, plan_of(columns=(ID,), apply="scheduled"))
    engine, store = log.engine, MemoryStore()

    def made(lsn: int, key: int, epoch: int) -> Any:
        one = engine.event("r", lsn, lsn, id=key, epoch=epoch)
        one["value"]["after"] = {"id": key}
        return one

    log.commit(rows(log, made(10, 1, 1), made(10, 2, 1)))
    log.commit(rows(log, made(50, 1, 2), first=2))
    log.apply(epoch=2)
    progress = Progress(epoch=2, complete_snapshot=str(epoch_start(2)))
    store.write(PROGRESS, progress.to_stored())
    drop(engine, log.table.name)
    rebuild_table(job_of(engine, store), log.table)
    assert log.state() == [(1,)]
