"""A lake that an earlier release wrote goes on under this code."""

import socket
from collections.abc import Iterator
from hashlib import md5
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.jobs.apply_changes import apply_table
from cdclake.jobs.control.plan_watcher import PlanWatcher
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.maintenance import actions
from cdclake.jobs.maintenance.table_maintenance import maintain_table
from cdclake.jobs.operations.executor import OperationExecutor
from cdclake.jobs.rebuild_tables import rebuild_table
from cdclake.jobs.stream.batch import MicroBatch
from cdclake.jobs.table_jobs.table_job import TableJob
from tests.spark.events import RECORD
from tests.stored_lake.checkpoint import checkpoint_offsets, records_after
from tests.stored_lake.rewriting import content_of, lost_by_rewriting
from tests.stored_lake.stored import ARCHIVES, Rows, StoredLake, stored_lake

pytestmark = pytest.mark.spark


@pytest.fixture(params=ARCHIVES, ids=lambda archive: archive.name)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoredLake]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with stored_lake(request.param, tmp_path, port) as lake:
        yield lake


def views(rows: Rows) -> Rows:
    """Return what users read; jobs may write the tables below it in another way."""
    return {name: rows[name] for name in rows if name.endswith(("_current", "_history"))}


def test_archives_are_there_and_small() -> None:
    assert "lake-0.1.0.tar.gz" in {archive.name for archive in ARCHIVES}
    assert max(archive.stat().st_size for archive in ARCHIVES) < 2_000_000


def test_reader_returns_every_stored_row(stored: StoredLake) -> None:
    assert stored.rows() == stored.expected["stored"]


def test_jobs_keep_every_row(
    stored: StoredLake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apply what is pending, maintain all tables, and rebuild the states from the changelogs."""
    job, expected = stored.job(spark, naming.APPLY_JOB), views(stored.expected["stored"])
    shipments = job.plan.table("shipments")
    assert [apply_table(job, shipments), apply_table(job, shipments)] == [3, 0]
    assert shipped(job) == SHIPPED
    monkeypatch.setattr(actions, "MIN_SMALL_FILES", 2)
    for table in job.plan.tables:
        maintain_table(job, table)
    for name in ("orders", "orders_changes"):
        assert job.lake.load(name).currentSnapshot().operation() == "replace"
    assert views(stored.rows()) == expected
    for table in job.plan.tables:
        rebuild_table(job, table)
    assert shipped(job) == SHIPPED
    assert views(stored.rows()) == expected


SHIPPED = {11: ("12.375", "sent"), 13: ("14.625", "packed"), 14: ("0.001", "sent")}


def shipped(job: TableJob) -> dict[int, tuple[str, str]]:
    rows = job.lake.read("shipments").where("NOT cdc_deleted").collect()
    return {row["shipment_id"]: (str(row["weight"]), row["state"]) for row in rows}


def go_on(stored: StoredLake, spark: SparkSession) -> None:
    """Stream the records that follow, once more with all that came before them, and apply."""
    lake, job = stored.lake, stored.job(spark, naming.STREAM_JOB)
    progress = Progress.load(lake.control)
    stream = MicroBatch(
        PlanWatcher(lake.plan_uri), lake.control, {}, OperationExecutor(lake.control, {})
    )
    following = records_after(checkpoint_offsets(stored, spark, progress.batch), stored.records)
    for number, records in enumerate((following, stored.records), start=progress.batch + 1):
        fields = [(r.topic, r.partition, r.offset, r.key, r.value, [*r.headers]) for r in records]
        stream(job.lake.spark.createDataFrame(fields, RECORD), number)
        tables = Progress.load(lake.control).tables.values()
        assert [table.last_error for table in tables if not table.is_streaming] == []
    for table in job.plan.tables:
        apply_table(job, table)
    assert stored.rows(without_times=True) == stored.expected["later"]


@pytest.mark.slow
def test_stream_goes_on_from_the_stored_offsets(stored: StoredLake, spark: SparkSession) -> None:
    go_on(stored, spark)
    notes = {
        key: "".join(md5(f"{key}.{part}".encode()).hexdigest() for part in range(1, 101))
        for key in (2, 4)
    }
    rows = stored.job(spark, naming.STREAM_JOB).lake.read("orders").where("NOT cdc_deleted")
    assert {row["order_id"]: (str(row["total"]), row["note"]) for row in rows.collect()} == {
        1: ("10.25", None), 2: ("100.00", notes[2]), 5: ("52.25", "note 5"),
        6: ("61.50", "note 6"), 24: ("41.00", notes[4]), 30: ("0.00", "new"),
    }  # fmt: skip


def test_checkpoint_ends_where_the_progress_does(stored: StoredLake, spark: SparkSession) -> None:
    progress, plan = Progress.load(stored.lake.control), stored.lake.plan
    offsets = checkpoint_offsets(stored, spark, progress.batch)
    ends = {plan.table(name).topic: table.offsets for name, table in progress.tables.items()}
    ends[plan.heartbeat_rows_topic] = progress.heartbeat_offsets
    for topic, partitions in ends.items():
        assert partitions == {int(p): end for p, end in offsets[topic].items() if end}, topic


@pytest.mark.slow
def test_stored_json_survives_a_rewrite(stored: StoredLake) -> None:
    assert lost_by_rewriting(stored) == []
    progress = Progress.load(stored.lake.control)
    assert (progress.epoch, set(progress.tables)) == (1, {"orders", "order_lines", "shipments"})
    orders = progress.table("orders")
    assert (orders.is_streaming, orders.quarantined) == (True, 1)


@pytest.mark.slow
def test_planted_stamp_property_is_noticed(
    stored: StoredLake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(naming, "STAMP_PROPERTY", "cdclake.renamed")
    with pytest.raises(AssertionError, match="no snapshot of its changelog"):
        go_on(stored, spark)


@pytest.mark.parametrize("path", ["epoch", "beat_us", "tables/orders/quarantined"])
def test_planted_progress_key_is_noticed(stored: StoredLake, path: str) -> None:
    """The stored object has another key than the code: as if the code had renamed its own."""
    content = content_of(stored.lake.control, "progress.json")
    *parents, key = path.split("/")
    holder = content
    for parent in parents:
        holder = holder[parent]
    holder["planted"] = holder.pop(key)
    stored.lake.control.write("progress.json", content)
    assert lost_by_rewriting(stored) == ["/".join(["progress", *parents, "planted"])]
