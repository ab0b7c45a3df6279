"""Stamps under other tools: what they expire is noticed, and what they bury is renewed."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from cdclake.errors import Fenced, TableError
from cdclake.iceberg import snapshot_tags
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.maintenance.actions import MaintainedTable, compact_files, expire_snapshots
from cdclake.jobs.stream import stamp_renewal
from cdclake.jobs.stream.stamp_renewal import StampRenewal, renew_changelog_stamp, renew_stamp
from tests.spark.events import Engine, plan_of

pytestmark = pytest.mark.spark


@pytest.fixture
def engine(spark: SparkSession) -> Engine:
    return Engine(spark)


@pytest.mark.slow
def test_a_stamp_that_another_tool_expired_stops_the_table(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, v="a"))
    engine.run(e("u", 20, 20, v="b"))
    log = engine.lake.qualified(engine.table.changes)
    engine.spark.sql(f"DELETE FROM {log} WHERE cdc_lsn = 10")  # a commit without a stamp
    expire_all_but_the_newest(engine, engine.table.changes)
    with pytest.raises(TableError, match=r"no snapshot of its changelog .* has a stamp"):
        engine.run(e("u", 30, 30, v="c"))


@pytest.mark.slow
def test_a_state_whose_stamp_was_expired_is_brought_up_from_the_whole_log(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, v="1", big="A"), e("c", 10, 11, id=2, v="x"), e("d", 20, 20, id=2))
    engine.run(e("u", 30, 30, v="3", big=...))
    state = engine.lake.qualified(engine.table.name)
    engine.spark.sql(f"UPDATE {state} SET v = v WHERE id = 1")  # a commit without a stamp
    expire_all_but_the_newest(engine, engine.table.name)
    assert engine.lake.stamped(engine.table.name).stamp is None
    engine.run(e("c", 12, 12, id=2, v="late"), e("c", 40, 40, id=3, v="new"))
    assert engine.state() == {1: ("3", "A"), 3: ("new", None)}
    assert engine.lake.stamped(engine.table.name).stamp is not None


@pytest.mark.slow
def test_expiry_that_leaves_the_stamp_leaves_everything(engine: Engine) -> None:
    e = engine.event
    batch = [e("c", 10, 10, v="a"), e("u", 20, 20, v="b")]
    for offset, event in enumerate(batch):
        engine.run(event, offset=offset)
    expire_all_but_the_newest(engine, engine.table.changes)
    engine.run(*batch, e("u", 30, 30, v="c"), offset=0)
    assert [row["cdc_lsn"] for row in engine.log()] == [10, 20, 30]
    assert engine.state() == {1: ("c", None)}


@pytest.mark.slow
def test_our_own_expiry_keeps_the_stamp_that_stands_behind_a_compaction(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_tags, "EVERY", timedelta(milliseconds=1))  # not all in one hour
    for lsn in range(10, 17):
        engine.run(engine.event("c", lsn, lsn, id=lsn, v="a"))
    later = datetime.now(UTC) + timedelta(days=30)
    for name in (engine.table.changes, engine.table.name):
        upkeep = MaintainedTable(engine.lake, engine.table, name, later, timedelta(days=90))
        before = engine.lake.stamped(name).stamp
        compact_files(upkeep)
        expire_snapshots(upkeep)
        assert len(list(engine.lake.load(name).snapshots())) == 2
        assert engine.lake.stamped(name).stamp == before
    engine.run(engine.event("u", 20, 20, id=10, v="b"))
    assert engine.state()[10] == ("b", None)


def expire_all_but_the_newest(engine: Engine, table: str) -> None:
    """Expire snapshots as another tool does, whatever stamps they carry."""
    engine.spark.sql(
        f"CALL lake.system.expire_snapshots(table => 'cdc.{table}', "
        f"older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)"
    )


@pytest.mark.slow
@pytest.mark.parametrize("maintenance", ["glue", "none"])
def test_a_quiet_table_that_another_tool_compacts_keeps_its_stamps(
    spark: SparkSession, maintenance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B14: compactions follow the last stamp, whose snapshot then expires."""
    engine = Engine(spark, plan_of(maintenance=maintenance))
    e = engine.event
    for number in range(10, 70, 10):
        engine.run(e("c", number, number, id=number, v="a"))
    names = (engine.table.changes, engine.table.name)
    before = {name: engine.lake.stamped(name).stamp for name in names}
    for name in names:
        compact_as_glue_does(engine, name)
    renewal = StampRenewal(engine.leases)
    renewal.renew_due([engine.stream()], is_scheduled=False)
    assert not any(engine.lake.stamped(name).is_current for name in names)  # they are young
    monkeypatch.setattr(stamp_renewal, "RENEW_AFTER", timedelta(0))
    renewal.renew_due([engine.stream()], is_scheduled=False)
    assert all(engine.lake.stamped(name).is_current for name in names)
    for name in names:
        expire_all_but_the_newest(engine, name)
    assert {name: engine.lake.stamped(name).stamp for name in names} == before
    engine.run(e("u", 70, 70, id=10, v="b"))
    assert engine.state()[10] == ("b", None) and len(engine.log()) == 7


def compact_as_glue_does(engine: Engine, name: str) -> None:
    """A rewriting of all files, in a commit without a stamp."""
    engine.spark.sql(
        f"CALL lake.system.rewrite_data_files(table => 'cdc.{name}',"
        " options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))"
    )
    assert not engine.lake.stamped(name).is_current


def test_a_stamp_is_not_renewed_over_a_newer_one(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, v="a"))
    log = engine.table.changes
    compact_as_glue_does(engine, log)
    old = engine.lake.stamped(log)
    engine.run(e("u", 20, 20, v="b"))
    newest = engine.lake.stamped(log).stamp
    monkeypatch.setattr(stamp_renewal, "RENEW_AFTER", timedelta(0))
    with monkeypatch.context() as patched:  # as it was before the append
        patched.setattr(LakeTables, "stamped", lambda *_: old)
        with pytest.raises(Fenced):
            renew_changelog_stamp(engine.lake, log, datetime.now(UTC))
    assert engine.lake.stamped(log).stamp == newest


def test_a_states_stamp_is_not_renewed_over_a_newer_one(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    e, state = engine.event, engine.table.name
    engine.run(e("c", 10, 10, v="a"))
    compact_as_glue_does(engine, state)
    old = engine.lake.stamped(state)
    engine.run(e("u", 20, 20, v="b"))
    newest = engine.lake.stamped(state)
    monkeypatch.setattr(stamp_renewal, "RENEW_AFTER", timedelta(0))
    with monkeypatch.context() as patched:  # as it was before the update
        patched.setattr(LakeTables, "stamped", lambda *_: old)
        renew_stamp(engine.lake, state, datetime.now(UTC))
    after = engine.lake.stamped(state)
    assert (after.stamp, after.snapshot_id) == (newest.stamp, newest.snapshot_id)
