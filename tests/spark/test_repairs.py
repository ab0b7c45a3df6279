"""Replay and resync in the engine: refused events find their place, ghosts go, nothing else."""

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from cdclake.control_objects import ScanEnd, outcome_name, request_name
from cdclake.debezium.position import just_after
from cdclake.debezium.refusals import TOO_OLD
from cdclake.errors import Fenced
from cdclake.iceberg.collapse import replay_age
from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.maintenance.actions import MaintainedTable, collapse_history, purge_tombstones
from cdclake.jobs.operations import executor, replay
from cdclake.jobs.operations.executor import OperationExecutor, scan_end
from cdclake.jobs.operations.replay import replay_quarantine
from cdclake.jobs.operations.stale_rows import delete_stale_rows
from cdclake.plan import Column
from tests.spark.events import RECORD, Engine, MemoryStore, plan_of

pytestmark = pytest.mark.spark

NUMBERS = (
    Column(source="id", name="id", type="bigint"),
    Column(source="v", name="v", type="numeric(5,2)"),
    Column(source="big", name="big", type="text"),
)


@pytest.fixture(autouse=True)
def young(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events here are of 2023; none is too old but where a test says so."""
    monkeypatch.setattr(replay, "replay_age", lambda *_: None)


@pytest.fixture
def engine(spark: SparkSession) -> Engine:
    return Engine(spark)


@pytest.fixture
def numbers(spark: SparkSession) -> Engine:
    """A table of numbers that refuses what they cannot hold."""
    return Engine(spark, plan_of(columns=NUMBERS))


def store_null_instead(engine: Engine) -> None:
    """Have values that were refused as not representable stored as NULL from now on."""
    engine.declare(replace(engine.plan, not_representable="null"))


def log_of(engine: Engine) -> list[tuple[object, ...]]:
    names = ("cdc_position", "cdc_op", "id", "v", "cdc_offset")
    return [tuple(row[name] for name in names) for row in engine.log()]


# --- replay --------------------------------------------------------------------------------------


def test_replayed_events_take_their_place_in_the_order(numbers: Engine) -> None:
    e = numbers.event
    numbers.run(
        e("c", 10, 10, id=1, v="1.00"), e("u", 20, 20, id=1, v="NaN"), e("c", 30, 30, id=2, v="NaN")
    )
    numbers.run(e("u", 40, 40, id=1, v="4.00"), e("d", 50, 50, id=2), e("c", 60, 60, id=3, v="NaN"))
    before = numbers.lake.stamped(numbers.table.changes).stamp
    store_null_instead(numbers)
    done = replay_quarantine(numbers.stream(), epoch=1)
    assert (done.replayed, done.known, done.refused) == (3, 0, {})
    assert {key: str(v) for key, (v, _) in numbers.state().items()} == {1: "4.00", 3: "None"}
    assert [row["cdc_lsn"] for row in numbers.log()] == [10, 20, 30, 40, 50, 60]
    assert numbers.quarantined() == []
    after = numbers.lake.stamped(numbers.table.changes).stamp
    assert before is not None and after is not None
    assert json.loads(after)["offsets"] == json.loads(before)["offsets"] == {"0": 6}
    state = numbers.state()
    rebuild_state(numbers.lake, numbers.table)
    assert numbers.state() == state


@pytest.mark.slow
def test_what_is_still_refused_stays_as_it_was(numbers: Engine) -> None:
    e = numbers.event
    numbers.run((b'{"id": 7}', b"{rubbish"), e("c", 10, 10, id=1, v="NaN"))
    before = numbers.quarantined()[0]
    same = replay_quarantine(numbers.stream(), epoch=1)
    assert (same.replayed, sum(same.refused.values()), len(numbers.quarantined())) == (0, 2, 2)
    store_null_instead(numbers)
    done = replay_quarantine(numbers.stream(), epoch=1)
    [(reason, count)] = done.refused.items()
    assert (done.replayed, count, reason.split(":")[0]) == (1, 1, "UNREADABLE_VALUE")
    assert numbers.quarantined() == [before]


@pytest.mark.slow
def test_a_replay_keeps_a_refused_record_that_has_an_accepted_ones_place(numbers: Engine) -> None:
    """A topic that was created again has its offsets once more."""
    accepted = numbers.event("c", 10, 10, id=1, v="NaN")
    numbers.run(accepted, offset=0)
    numbers.run((b'{"id": 7}', b"{rubbish"), offset=0, epoch=2)
    store_null_instead(numbers)
    assert replay_quarantine(numbers.stream(), epoch=2).replayed == 1
    assert b"{rubbish" in {bytes(row["value"]) for row in numbers.quarantined()}
    assert replay_quarantine(numbers.stream(), epoch=2).known == 1


def test_a_replayed_event_brings_no_row_back_whose_tombstone_is_purged(
    numbers: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "replay_age", replay_age)
    e, now = numbers.event, time.time_ns() // 1000
    numbers.run(
        e("c", 10, 10, id=1, v="NaN"), e("d", 20, 20, id=1),
        e("c", 30, 30, id=2, v="NaN", ts=now), e("d", 40, 40, id=2, ts=now),
        e("c", 50, 50, id=3, v="NaN", ts=now),
    )  # fmt: skip
    for action in (purge_tombstones, collapse_history):
        for name in (numbers.table.changes, numbers.table.name):
            action(
                MaintainedTable(numbers.lake, numbers.table, name, datetime.now(UTC), timedelta(30))
            )
    store_null_instead(numbers)
    done = replay_quarantine(numbers.stream(), epoch=1)
    assert (done.replayed, done.refused) == (2, {TOO_OLD: 1})
    assert set(numbers.state()) == {3}
    assert [row["offset"] for row in numbers.quarantined()] == [0]


def test_a_crash_before_the_quarantine_is_emptied_changes_nothing(
    numbers: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    e = numbers.event
    numbers.run(e("c", 10, 10, id=1, v="NaN"), e("u", 20, 20, id=1, v="2.00"))
    store_null_instead(numbers)
    with monkeypatch.context() as patched:
        patched.setattr(replay, "_release", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            replay_quarantine(numbers.stream(), epoch=1)
    log, state = log_of(numbers), numbers.state()
    assert len(log) == 2 and len(numbers.quarantined()) == 1
    again = replay_quarantine(numbers.stream(), epoch=1)
    assert (again.replayed, again.known) == (0, 1)
    assert replay_quarantine(numbers.stream(), epoch=1).released == 0
    assert (log_of(numbers), numbers.state(), numbers.quarantined()) == (log, state, [])


@pytest.mark.slow
def test_an_event_that_was_sent_and_refused_twice_is_applied_once(numbers: Engine) -> None:
    e = numbers.event
    refused = e("c", 10, 10, id=1, v="NaN")
    numbers.run(refused)
    numbers.run(refused)  # a restarted connector sends it again, with another offset
    store_null_instead(numbers)
    done = replay_quarantine(numbers.stream(), epoch=1)
    assert (done.replayed, done.known, len(numbers.log())) == (1, 1, 1)
    numbers.run(refused, e("c", 20, 20, id=2, v="2.00"))  # and once more after the replay
    assert [row["cdc_lsn"] for row in numbers.log()] == [10, 20]


def test_a_refused_batch_that_runs_again_is_quarantined_once(numbers: Engine) -> None:
    refused = numbers.event("c", 10, 10, id=1, v="NaN")
    assert numbers.run(refused, offset=0).quarantined == 1
    assert numbers.run(refused, offset=0).quarantined == 0
    assert len(numbers.quarantined()) == 1


# --- ghosts --------------------------------------------------------------------------------------


def known(engine: Engine) -> str:
    """The position that a resync of now would sweep at."""
    return str(just_after(engine.log()[-1]["cdc_position"]))


@pytest.mark.slow  # by default test_lost_topics.py sweeps
def test_what_a_new_reading_did_not_find_is_swept(engine: Engine) -> None:
    e = engine.event
    engine.run(
        e("c", 10, 10, id=1, v="old"), e("c", 10, 11, id=2, v="ghost"), e("c", 10, 12, id=3, v="x")
    )
    position = known(engine)
    engine.run(
        e("r", 20, 30, id=1, v="read", incremental=True), e("u", 30, 35, id=3, v="changed"),
        e("c", 40, 45, id=4, v="new"),
    )  # fmt: skip
    assert delete_stale_rows(engine.stream(), position) == 1
    assert engine.state() == {1: ("read", None), 3: ("changed", None), 4: ("new", None)}
    log = log_of(engine)
    assert delete_stale_rows(engine.stream(), position) == 0
    assert log_of(engine) == log
    rebuild_state(engine.lake, engine.table)
    assert engine.state() == {1: ("read", None), 3: ("changed", None), 4: ("new", None)}


# --- requests ------------------------------------------------------------------------------------


def notification(engine: Engine, kind: str, **more: str) -> dict[str, object]:
    data = {"connector_name": "x", "scanned_collection": engine.table.source, **more}
    return {"aggregate_type": "Incremental Snapshot", "type": kind, "additional_data": data}


def asked(engine: Engine, store: MemoryStore, progress: Progress, *said: object) -> None:
    """One batch of the stream's repairs, in which the connector says something."""
    records = [
        (engine.plan.notification_topic, 0, offset, None, json.dumps(one).encode(), None)
        for offset, one in enumerate(said)
    ]
    frame = engine.spark.createDataFrame(records, RECORD)
    ranges = {engine.plan.notification_topic: {0: (0, len(said))}} if said else {}
    repairs_of = OperationExecutor(store, {})  # type: ignore[arg-type]
    repairs_of.run(engine.plan, frame, ranges, progress, lambda _: engine.stream())


@pytest.mark.slow
def test_a_resync_is_swept_when_all_that_was_read_is_in_the_log(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    e, name = engine.event, engine.table.name
    engine.run(e("c", 10, 10, id=1, v="a"), e("c", 10, 11, id=2, v="ghost"))
    store, progress = MemoryStore(), Progress(epoch=1)
    progress.table(name).offsets = {0: 2}
    request, outcome = request_name(name, "resync"), outcome_name(name, "resync")
    store.write(request, {"id": "i", "position": known(engine), "notified": 1})
    monkeypatch.setattr(executor, "read_gap", lambda *_: (None, {0: (2, 3)}))
    end = notification(engine, "TABLE_SCAN_COMPLETED", status="SUCCEEDED", total_rows_scanned="1")
    asked(engine, store, progress, end)  # an earlier reading's: before the request
    assert "ended" not in store.stored[request].content
    asked(engine, store, progress, end, notification(engine, "IN_PROGRESS"), end)
    assert outcome not in store.stored  # a row is still in Kafka only
    engine.run(e("r", 20, 30, id=1, v="read", incremental=True))
    progress.table(name).offsets = {0: 3}
    asked(engine, store, progress)
    swept = {"rows": 1, "ghosts": 1, "released": 0, "older_values": 0}
    assert store.stored[outcome].content == {"id": "i", **swept}
    assert request not in store.stored
    assert engine.state() == {1: ("read", None)}


@pytest.mark.slow
def test_a_table_that_joins_again_keeps_what_a_change_meanwhile_does_not_bring(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says so: what it keeps is from before the changes that it missed."""
    e, name = engine.event, engine.table.name
    engine.run(
        e("c", 10, 10, id=1, v="1", big="LARGE"), e("c", 10, 11, id=2, v="deleted while away")
    )
    store, progress = MemoryStore(), Progress(epoch=1)
    mine = progress.table(name)
    monkeypatch.setattr(executor, "read_gap", lambda *_: (None, {0: (2, 4)}))
    end = notification(engine, "TABLE_SCAN_COMPLETED", status="SUCCEEDED", total_rows_scanned="1")

    def read_again(**more: object) -> dict[str, object]:
        request = {"id": "i", "position": known(engine), "notified": 0, **more}
        store.write(request_name(name, "resync"), request)
        return request

    read_again(rejoins=True)
    engine.run(e("u", 20, 20, id=1, v="2", big=...), e("c", 30, 30, id=3, v="new"))
    mine.offsets = {0: 4}
    asked(engine, store, progress, end)
    assert engine.state() == {1: ("2", "LARGE"), 3: ("new", None)}
    outcome = store.stored[outcome_name(name, "resync")].content
    assert (outcome["ghosts"], outcome["older_values"]) == (1, 1)
    assert mine.is_streaming and mine.last_error is not None
    assert f"cdclake resync {name}" in mine.last_error
    progress = Progress.load(store)  # type: ignore[arg-type]
    read_again()
    engine.run(e("r", 40, 40, id=1, v="2", big="NOW", incremental=True),
               e("r", 40, 41, id=3, v="new", incremental=True))  # fmt: skip
    progress.table(name).offsets = {0: 6}
    asked(engine, store, progress, end)
    assert store.stored[outcome_name(name, "resync")].content["older_values"] == 0
    assert (progress.table(name).last_error, progress.table(name).missed_below) == (None, None)
    assert engine.state() == {1: ("2", "NOW"), 3: ("new", None)}


def test_a_fenced_streams_request_stays_for_the_other_one(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fenced(*_: object) -> None:
        raise Fenced("another stream has written")

    store, progress, name = MemoryStore(), Progress(epoch=1), engine.table.name
    store.write(request_name(name, "replay"), {"id": "i"})
    monkeypatch.setattr(executor, "replay_quarantine", lambda *_, **__: fenced())
    with pytest.raises(Fenced):
        asked(engine, store, progress)
    assert list(store.stored) == [request_name(name, "replay")]


def test_a_table_that_the_connector_did_not_read_is_not_swept(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.run(engine.event("c", 10, 10, id=1, v="a"))
    store, progress, name = MemoryStore(), Progress(epoch=1), engine.table.name
    monkeypatch.setattr(executor, "read_gap", lambda *_: (None, {}))
    store.write(request_name(name, "resync"), {"id": "i", "position": known(engine), "notified": 0})
    failed = {"status": "NO_PRIMARY_KEY", "total_rows_scanned": "0"}
    asked(engine, store, progress, notification(engine, "TABLE_SCAN_COMPLETED", **failed))
    assert "NO_PRIMARY_KEY" in store.stored[outcome_name(name, "resync")].content["error"]
    assert engine.state() == {1: ("a", None)}


@pytest.mark.slow
def test_a_stopped_tables_replay_waits_and_lowers_its_count(numbers: Engine) -> None:
    numbers.run(numbers.event("c", 10, 10, id=1, v="NaN"), (b"{}", b"{rubbish"))
    store_null_instead(numbers)
    store, progress, name = MemoryStore(), Progress(epoch=1), numbers.table.name
    mine = progress.table(name)
    mine.hold("a test", 0.0)
    mine.quarantined = 2
    store.write(request_name(name, "replay"), {"id": "i"})
    asked(numbers, store, progress)
    assert len(numbers.quarantined()) == 2
    mine.flow()
    asked(numbers, store, progress)
    outcome = store.stored[outcome_name(name, "replay")].content
    assert (outcome["id"], outcome["replayed"], mine.quarantined) == ("i", 1, 1)


def test_an_aborted_reading_is_an_end(engine: Engine) -> None:
    said = {"aggregate_type": "Incremental Snapshot", "type": "ABORTED", "additional_data": {}}
    assert scan_end(iter([said]), engine.table) == ScanEnd(status="ABORTED", rows=0)
    assert scan_end(iter([notification(engine, "STARTED")]), engine.table) is None
