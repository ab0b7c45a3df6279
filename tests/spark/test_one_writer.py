"""One writer: whoever slept between a look and a commit is refused, and nothing stands twice."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.debezium.position import just_after
from cdclake.errors import CommitConflict, Fenced
from cdclake.jobs.apply.rebuilt_state import ingested_through, rebuild_state
from cdclake.jobs.bulk_load.table_load import TableLoad
from cdclake.jobs.iceberg import commit_retry
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.maintenance.actions import MaintainedTable, compact_files
from cdclake.jobs.operations.replay import replay_quarantine
from cdclake.jobs.operations.stale_rows import delete_stale_rows
from cdclake.jobs.rebuild_tables import rebuild_table
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.plan import Column, Table
from tests.spark.events import Engine, FreeLeases, MemoryStore, plan_of
from tests.spark.listeners import Meanwhile

pytestmark = pytest.mark.spark


@pytest.fixture
def engine(spark: SparkSession) -> Engine:
    return Engine(spark)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_retry, "pause", lambda _: None)


def asleep_before_its_commit(
    monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]
) -> None:
    """The next append stops between its look at the log and its commit, while others write."""

    def wakes_up(*args: object, **how: object) -> None:
        monkeypatch.setattr(TableHandle, "append", append)
        meanwhile()
        append(*args, **how)  # type: ignore[arg-type]

    append = TableHandle.append
    monkeypatch.setattr(TableHandle, "append", wakes_up)


def lsns(engine: Engine) -> list[int]:
    return [row["cdc_lsn"] for row in engine.log()]


def stamp_of(engine: Engine) -> ChangesStamp:
    stamp = engine.lake.stamped(engine.table.changes).stamp
    assert stamp is not None
    return ChangesStamp.from_json(stamp)


# --- the fence ------------------------------------------------------------------------------------


@pytest.mark.parametrize("begun", [False, True], ids=["empty log", "begun log"])
def test_the_owner_that_wakes_up_after_a_takeover_is_refused(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    e = engine.event
    if begun:
        engine.run(e("c", 1, 1, id=9, v="before"))
    first = engine.next_offset
    batch = [e("c", 10, 10, v="a"), e("u", 20, 20, v="b")]
    asleep_before_its_commit(monkeypatch, lambda: engine.run(*batch, offset=first))
    with pytest.raises(Fenced, match="another stream has written"):
        engine.run(*batch, offset=first)
    assert lsns(engine) == ([1, 10, 20] if begun else [10, 20])
    engine.run(e("u", 30, 30, v="c"))
    assert engine.state()[1] == ("c", None)


@pytest.mark.slow
def test_another_writers_later_offsets_refuse_the_owner_too(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its stamp would take the log's place back, and a replay would append the rest again."""
    e = engine.event
    engine.run(e("c", 10, 10, v="a"))
    both = [e("u", 20, 20, v="b"), e("u", 30, 30, v="c")]

    def new_owner() -> None:
        engine.run(both[0], offset=1)
        engine.run(both[1], offset=2)

    asleep_before_its_commit(monkeypatch, new_owner)
    with pytest.raises(Fenced):
        engine.run(both[0], offset=1)
    assert (lsns(engine), stamp_of(engine).offsets) == ([10, 20, 30], {0: 3})


def test_a_repair_that_wakes_up_after_a_takeover_is_refused(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="ghost"))
    position = str(just_after(engine.log()[-1]["cdc_position"]))
    asleep_before_its_commit(monkeypatch, lambda: engine.run(e("c", 20, 20, id=2, v="b")))
    with pytest.raises(Fenced):
        delete_stale_rows(engine.stream(), position)
    assert (lsns(engine), stamp_of(engine).offsets) == ([10, 20], {0: 2})
    assert engine.state() == {1: ("ghost", None), 2: ("b", None)}


@pytest.mark.slow
def test_an_owner_is_refused_when_another_one_repaired(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a repair appended would else lie behind the state's stamp, and never be applied."""
    numbers = (
        Column(source="id", name="id", type="bigint"),
        Column(source="v", name="v", type="numeric(5,2)"),
        Column(source="big", name="big", type="text"),
    )
    engine = Engine(spark, plan_of(columns=numbers))
    e = engine.event
    young = time.time_ns() // 1000  # else its replay would be refused
    engine.run(e("c", 10, 10, id=1, v="1.00"), e("c", 20, 20, id=2, v="NaN", ts=young))
    engine.declare(replace(engine.plan, not_representable="null"))
    asleep_before_its_commit(monkeypatch, lambda: replay_quarantine(engine.stream(), epoch=1))
    with pytest.raises(Fenced):
        engine.run(e("c", 30, 30, id=3, v="3.00"), offset=2)
    engine.run(e("c", 30, 30, id=3, v="3.00"), offset=2)
    assert lsns(engine) == [10, 20, 30]
    assert {key: str(v) for key, (v, _) in engine.state().items()} == {
        1: "1.00", 2: "None", 3: "3.00",
    }  # fmt: skip


@pytest.mark.slow
def test_the_fence_stands_in_a_table_of_many_columns(spark: SparkSession) -> None:
    """Iceberg keeps no bounds for columns past the hundredth unless it is told to."""
    names = ["id", "v", "big", *(f"c{n}" for n in range(120))]
    columns = tuple(Column(source=n, name=n, type="bigint" if n == "id" else "text") for n in names)
    engine = Engine(spark, plan_of(columns=columns, replica_identity="full"))
    for lsn in (10, 20):
        event = engine.event("c", lsn, lsn, id=lsn, v="a")
        event["value"]["after"] |= {name: name for name in names[3:]}
        engine.run(event)
    assert lsns(engine) == [10, 20]


# --- merge and maintenance ------------------------------------------------------------------------


class FakeSource:
    """Source of a load, with unique keys."""

    def has_unique_keys(self, _: Table) -> bool:
        return True


def small_files(engine: Engine) -> MaintainedTable:
    """Maintenance of a state of several files, some with position deletes."""
    for lsn in range(10, 16):
        engine.run(engine.event("c", lsn, lsn, id=lsn, v="a"))
    engine.run(engine.event("u", 20, 20, id=10, v="b"))
    return MaintainedTable(
        engine.lake, engine.table, engine.table.name, datetime.now(UTC), timedelta(days=90)
    )


@pytest.mark.slow
def test_a_merge_that_lost_to_a_compaction_is_done_again(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    upkeep = small_files(engine)
    e = engine.event
    with Meanwhile(engine.spark).at_scan_of(engine.table.name, lambda: compact_files(upkeep)):
        engine.run(e("u", 30, 30, id=11, v="c"), e("d", 40, 40, id=12))
    assert engine.is_applied
    assert "try 1 lost to another writer" in caplog.text
    rows = engine.state()
    assert rows == {10: ("b", None), 11: ("c", None), **dict.fromkeys((13, 14, 15), ("a", None))}
    assert engine.apply(stamp_of(engine).ingested_through) == 0
    rebuild_state(engine.lake, engine.table)
    assert engine.state() == rows


@pytest.mark.slow
def test_two_owners_of_a_state_do_not_bring_a_row_in_twice(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="a"))
    engine.run(e("u", 20, 20, id=1, v="b"), e("c", 20, 21, id=2, v="c"), apply_now=False)
    through = stamp_of(engine).ingested_through

    def apply() -> int:
        return engine.apply(through)

    with Meanwhile(engine.spark).at_scan_of(engine.table.name, apply):
        assert apply() == 0  # all of it was applied by the quicker one
    assert "try 1 lost to another writer" in caplog.text
    assert engine.state() == {1: ("b", None), 2: ("c", None)}


@pytest.mark.slow
def test_a_compaction_that_lost_to_a_merge_is_done_again(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    upkeep = small_files(engine)
    e = engine.event

    def merge() -> None:
        engine.run(e("u", 30, 30, id=11, v="c"), e("d", 40, 40, id=12))

    with Meanwhile(engine.spark).at_scan_of(engine.table.name, merge):
        commit_retry.retry_on_conflict(engine.table.name, lambda: compact_files(upkeep))
    assert "try 1 lost to another writer" in caplog.text
    assert engine.state() == {
        10: ("b", None), 11: ("c", None), **dict.fromkeys((13, 14, 15), ("a", None)),
    }  # fmt: skip
    files = engine.spark.sql(f"SELECT * FROM {engine.lake.qualified(engine.table.name)}.files")
    assert files.count() < 6


def test_a_rebuild_that_lost_to_the_stream_is_done_again(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """Its lease has expired, as after a suspend: the stream has applied a delete meanwhile."""
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="a"), e("c", 10, 11, id=2, v="b"))
    control: Any = MemoryStore()
    job = TableJob(engine.plan, engine.lake, FreeLeases(), control, named=True)

    def delete() -> None:
        engine.run(e("d", 20, 20, id=1))

    with Meanwhile(engine.spark).at_scan_of(engine.table.changes, delete):
        rebuild_table(job, engine.table)
    assert engine.state() == {2: ("b", None)}
    assert "try 1 lost to another writer" in caplog.text


def test_a_load_does_not_fill_a_state_that_another_writer_has_filled(engine: Engine) -> None:
    engine.run(engine.event("c", 10, 10, id=1, v="a"))
    source: Any = FakeSource()
    load = TableLoad(engine.lake, engine.plan, engine.table, source, epoch=1)
    with pytest.raises(Fenced, match="another stream has written"):
        load._fill_state("{}")
    assert engine.state() == {1: ("a", None)}


@pytest.mark.slow
def test_a_merge_that_always_loses_leaves_the_state_for_later(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_retry, "MAX_TRIES", 2)
    upkeep = small_files(engine)

    def rewrite_all() -> None:
        upkeep.call("rewrite_data_files", options="map('rewrite-all', 'true')")

    e = engine.event
    with Meanwhile(engine.spark).at_scan_of(engine.table.name, rewrite_all, times=99):
        outcome = engine.run(e("u", 30, 30, id=11, v="c"))
        with pytest.raises(CommitConflict, match="other writers changed it during 2 tries"):
            engine.apply(stamp_of(engine).ingested_through)
    assert (outcome.appended, engine.is_applied) == (1, False)
    assert engine.state()[11] == ("a", None)
    engine.run(e("u", 40, 40, id=13, v="d"))
    assert engine.is_applied
    assert (engine.state()[11], engine.state()[13]) == (("c", None), ("d", None))


# --- stamps ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_tables_stamped_side_by_side_carry_each_their_own_stamp(spark: SparkSession) -> None:
    engines = [Engine(spark) for _ in range(8)]

    def work(number: int) -> None:
        engine = engines[number]
        for lsn in range(10, 10 + 5 * (number + 1), 5):
            engine.run(
                engine.event("c", lsn, lsn, id=lsn, v=str(number)), offset=1000 * number + lsn
            )

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    for number, engine in enumerate(engines):
        last = 10 + 5 * number
        assert stamp_of(engine).offsets == {0: 1000 * number + last + 1}
        assert stamp_of(engine).lsn_marks == {0: last}
        for table in (engine.table.changes, engine.table.name):
            stamps = stamps_in(engine, table)
            assert len(stamps) == len(set(stamps)) == number + 1
        assert stamps_in(engine, engine.table.name)[-1] == ingested_through(
            engine.lake, engine.table
        )


def stamps_in(engine: Engine, table: str) -> list[int]:
    """The moments of ingestion in the stamps of a table's snapshots, oldest first."""
    rows = engine.spark.sql(
        f"SELECT summary['cdclake.stamp'] AS stamp FROM {engine.lake.qualified(table)}.snapshots "
        "ORDER BY committed_at"
    ).collect()
    found = [json.loads(row["stamp"]) for row in rows]
    return [stamp.get("ingested", stamp.get("ingested_through")) for stamp in found]
