"""Which snapshots of a real Iceberg table stay, of which moments, and that their files do."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from pyspark.sql import SparkSession

from cdclake.iceberg import snapshot_tags
from cdclake.iceberg.snapshot_tags import hour_of, moment_of
from cdclake.jobs.jvm.java import each
from cdclake.jobs.maintenance import snapshot_expiration
from cdclake.jobs.maintenance.actions import ORPHAN_AGE, MaintainedTable, remove_orphans
from cdclake.jobs.maintenance.snapshot_expiration import remove_old_snapshots
from tests.spark.events import Engine

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def short_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_tags, "EVERY", timedelta(seconds=2))
    monkeypatch.setattr(snapshot_expiration, "KEEP_EVERY_COMMIT_FOR", timedelta(seconds=0))


def commit(engine: Engine, number: int) -> None:
    """A row in the place of the one before, and two commits that no job stamps, as upkeep's."""
    engine.run(engine.event("u", number, number, v=str(number)))
    for _ in range(2):
        engine.lake.load(engine.table.name).newFastAppend().commit()


def next_hour() -> None:
    now = datetime.now(UTC)
    time.sleep((hour_of(now) + snapshot_tags.EVERY - now).total_seconds())


def moments(table: Any) -> dict[int, datetime]:
    """When each of its snapshots was committed."""
    times = {one.snapshotId(): one.timestampMillis() for one in each(table.snapshots())}
    return {snapshot: datetime.fromtimestamp(ms / 1000, UTC) for snapshot, ms in times.items()}


def tags(table: Any) -> dict[datetime, int]:
    """What was current at the moments that have a tag."""
    references = each(table.refs().entrySet())
    found = {moment_of(str(one.getKey())): one.getValue().snapshotId() for one in references}
    return {moment: snapshot for moment, snapshot in found.items() if moment is not None}


def metadata_of(table: Any) -> str:
    return str(table.operations().current().metadataFileLocation())


@pytest.mark.slow  # by default the tags of a quiet table
def test_of_old_snapshots_the_last_of_each_hour_stays(spark: SparkSession) -> None:
    """With what it held, and with every file of those that go: somebody may be reading one."""
    engine = Engine(spark)
    name = engine.table.name
    for number in (10, 20, 30):
        commit(engine, number)
        next_hour()
    before = moments(engine.lake.load(name))
    lists = [str(one.manifestListLocation()) for one in each(engine.lake.load(name).snapshots())]
    commit(engine, 40)
    recent = set(moments(engine.lake.load(name))) - set(before)

    remove_old_snapshots(engine.lake, name, datetime.now(UTC))

    table = engine.lake.load(name)
    kept = tags(table)
    assert kept == {
        end: max((at, one) for one, at in before.items() if at <= end)[1] for end in kept
    }
    ends = {hour_of(at - timedelta(milliseconds=1)) + snapshot_tags.EVERY for at in before.values()}
    assert set(kept) == ends and len(kept) < len(before)
    assert set(moments(table)) == set(kept.values()) | recent
    held = [engine.lake.read(name, kept[end]).collect()[0]["v"] for end in sorted(kept)]
    assert held[-1] == "30" and set(held) <= {"10", "20", "30"}
    assert all(Path(urlparse(one).path).exists() for one in lists)
    engine.run(engine.event("u", 50, 50, v="50"))
    assert engine.state() == {1: ("50", None)}


@pytest.mark.slow
def test_who_comes_again_finds_nothing_to_do(spark: SparkSession) -> None:
    """Also where the newest is old: what is current needs no tag."""
    engine = Engine(spark)
    name = engine.table.name
    commit(engine, 10)
    next_hour()
    engine.run(engine.event("u", 20, 20, v="20"))
    next_hour()
    later = datetime.now(UTC)
    remove_old_snapshots(engine.lake, name, later)
    kept = metadata_of(engine.lake.load(name))
    remove_old_snapshots(engine.lake, name, later)
    remove_old_snapshots(engine.lake, name, later + timedelta(days=1))
    assert metadata_of(engine.lake.load(name)) == kept


@pytest.mark.slow
def test_the_newest_stamp_and_what_follows_it_stay(spark: SparkSession) -> None:
    engine = Engine(spark)
    name = engine.table.name
    commit(engine, 10)
    next_hour()
    commit(engine, 20)
    stamped = engine.lake.stamped(name)
    remove_old_snapshots(engine.lake, name, datetime.now(UTC) + timedelta(days=30))
    assert engine.lake.stamped(name).stamp == stamped.stamp
    assert engine.lake.stamped(name).stamped_at_ms == stamped.stamped_at_ms
    engine.run(engine.event("u", 30, 30, v="30"))
    assert engine.state() == {1: ("30", None)}


@pytest.mark.slow
def test_tags_go_when_they_are_old(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_expiration, "KEEP_HOURLY_FOR", timedelta(seconds=6))
    engine = Engine(spark)
    name = engine.table.name
    commit(engine, 10)
    next_hour()
    commit(engine, 20)
    remove_old_snapshots(engine.lake, name, datetime.now(UTC))
    first = tags(engine.lake.load(name))
    time.sleep(6)
    commit(engine, 30)
    remove_old_snapshots(engine.lake, name, datetime.now(UTC))
    left = tags(engine.lake.load(name))
    assert first and not set(first.values()) & set(moments(engine.lake.load(name)))
    assert not set(first) & set(left)


def test_a_quiet_tables_tag_is_as_old_as_its_last_hour(spark: SparkSession) -> None:
    """Iceberg counts from the snapshot's commit, which may be older than a tag may be."""
    engine = Engine(spark)
    name = engine.table.name
    commit(engine, 10)
    quiet = engine.lake.stamped(name).snapshot_id
    assert quiet is not None
    for _ in range(3):
        next_hour()
    ended = datetime.now(UTC)
    commit(engine, 20)
    remove_old_snapshots(engine.lake, name, datetime.now(UTC))
    table = engine.lake.load(name)
    [(tag, reference)] = [
        (str(one.getKey()), one.getValue())
        for one in each(table.refs().entrySet())
        if one.getValue().snapshotId() == quiet
    ]
    moment = moment_of(tag)
    assert moment is not None and moment <= ended - 2 * snapshot_tags.EVERY
    expires = moments(table)[quiet] + timedelta(milliseconds=reference.maxRefAgeMs())
    hour = hour_of(ended)  # at its end the next commit was current, or is still being made
    assert expires >= hour + snapshot_expiration.KEEP_HOURLY_FOR
    assert expires <= datetime.now(UTC) + snapshot_expiration.KEEP_HOURLY_FOR


@pytest.mark.slow
def test_hours_before_and_after_a_rollback_keep_their_snapshots(spark: SparkSession) -> None:
    engine = Engine(spark)
    name = engine.table.name
    next_hour()
    engine.run(engine.event("u", 10, 10, v="10"))
    first = engine.lake.load(name).currentSnapshot().snapshotId()
    engine.lake.load(name).newFastAppend().commit()
    abandoned = engine.lake.load(name).currentSnapshot().snapshotId()
    next_hour()
    time.sleep(0.1)
    engine.lake.load(name).manageSnapshots().rollbackTo(first).commit()
    for _ in range(3):
        next_hour()
    engine.run(engine.event("u", 20, 20, v="20"))
    remove_old_snapshots(engine.lake, name, datetime.now(UTC))
    kept = tags(engine.lake.load(name))
    assert [kept[moment] for moment in sorted(kept)][-2:] == [abandoned, first]


@pytest.mark.slow  # by default the ages of the tags
def test_a_quiet_table_has_a_way_back_after_its_next_commit(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_expiration, "KEEP_HOURLY_FOR", timedelta(seconds=20))
    engine = Engine(spark)
    name = engine.table.name
    commit(engine, 10)
    quiet = engine.lake.stamped(name).snapshot_id
    time.sleep(24)
    commit(engine, 20)
    remove_old_snapshots(engine.lake, name, datetime.now(UTC))
    assert quiet in tags(engine.lake.load(name)).values()
    assert [row["v"] for row in engine.lake.read(name, quiet).collect()] == ["10"]
    time.sleep(24)
    commit(engine, 30)
    remove_old_snapshots(engine.lake, name, datetime.now(UTC))
    assert quiet not in moments(engine.lake.load(name))


def test_a_table_without_commits_has_nothing_to_forget(spark: SparkSession) -> None:
    engine = Engine(spark)
    before = metadata_of(engine.lake.load(engine.table.name))
    remove_old_snapshots(engine.lake, engine.table.name, datetime.now(UTC))
    assert metadata_of(engine.lake.load(engine.table.name)) == before


@pytest.mark.slow
def test_what_nothing_refers_to_is_looked_for_though_the_history_is_young(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thinning cuts the history; the tagged snapshots say how old the table is."""
    called: list[str] = []
    monkeypatch.setattr(
        MaintainedTable, "call", lambda _, procedure, **__: called.append(procedure)
    )
    engine = Engine(spark)
    name = engine.table.name
    for number in (10, 20, 30):
        commit(engine, number)
        next_hour()
    first = min(moments(engine.lake.load(name)).values())
    commit(engine, 40)
    remove_old_snapshots(engine.lake, name, datetime.now(UTC))
    oldest = min(moments(engine.lake.load(name)).values())
    assert oldest - first < snapshot_tags.EVERY
    for age, expected in ((timedelta(0), []), (timedelta(milliseconds=1), ["remove_orphan_files"])):
        now = oldest + ORPHAN_AGE + age
        remove_orphans(MaintainedTable(engine.lake, engine.table, name, now, timedelta(days=90)))
        assert called == expected
