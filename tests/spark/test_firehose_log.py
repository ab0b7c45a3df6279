"""The same recorded events by stream and by a misbehaving Firehose: equal logs, equal states."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.debezium.changelog_rows import LogRows, Place, read_event
from cdclake.debezium.position import epoch_start, history_part
from cdclake.debezium.refusals import RefusedEvent
from cdclake.jobs.apply.rebuilt_state import applied_through
from cdclake.jobs.maintenance.actions import MaintainedTable, compact_files
from cdclake.local.firehose.fault_injection import KINDS, FaultInjector
from cdclake.plan import Plan
from tests.recorded.recording import Record, Recording
from tests.spark.events import plan_of
from tests.spark.firehose_log import (
    FirehoseLog,
    logged,
    stored,
    streamed,
    under_a_new_name,
)

pytestmark = pytest.mark.spark

HOUR = 3_600_000_000
TABLES = [
    ("changes", "plain"), ("changes", "whole"), ("changes", "by_index"), ("changes", "pair"),
    ("changes", "parent"), ("changes", "child"), ("changes", "parts"),
    ("snapshots", "read_again"), ("snapshots", "flowing"),
    ("toast", "toasted"), ("toast", "domains"), ("toast", "whole"), ("toast", "long_key"),
    ("toast", "masked"),
    ("types", "typed"), ("types", "keyed"),
]  # fmt: skip


class Both:
    """A recorded table by both ways, the stream's read once."""

    def __init__(self, spark: SparkSession, name: str, lake_name: str) -> None:
        self.spark = spark
        self.recording = Recording.load(name)
        self.plan = under_a_new_name(self.recording, lake_name)
        table = self.plan.tables[0]
        records = self.recording.of_topic(table.topic)
        self.refused = {r.offset: why for r in records if (why := refusal(r, self.plan))}
        self.records = [r for r in records if r.offset not in self.refused]
        engine = streamed(spark, self.plan, self.records)
        self.log = logged(engine.lake.read(table.changes))
        self.state = stored(engine.lake.read(table.name))

    def by_firehose(
        self, seed: int, *, at_once: int = 10, applies: float = 2, looks: bool = True
    ) -> None:
        """Deliver with faults, apply after some commits and in the end; find what the stream has.

        `applies` is how often on average before the end. `looks` has a reader look at the views
        before and after the last rows are applied.
        """
        chance = random.Random(seed)
        log = FirehoseLog(self.spark, under_a_new_name(self.recording, self.plan.tables[0].source))
        records = self.recording.of_topic(log.table.topic)
        done = log.deliver(records, FaultInjector(seed, KINDS), at_once=at_once)
        assert {f.record.offset for _, f in done.kept.failures} == {*self.refused}
        for _, rows in done.logs.commits:
            log.commit(rows)
            if chance.random() < applies / len(done.logs.commits):
                log.apply()
        current = log.current() if looks else None
        log.apply()
        lake = log.engine.lake
        assert logged(lake.read(log.table.changes)) == self.log
        assert stored(lake.read(log.table.name)) == self.state
        assert current is None or current == log.state()


_KNOWN: dict[tuple[str, str], Both] = {}


def both_ways(spark: SparkSession, name: str, lake_name: str) -> Both:
    if (name, lake_name) not in _KNOWN:
        _KNOWN[name, lake_name] = Both(spark, name, lake_name)
    return _KNOWN[name, lake_name]


def refusal(record: Record, plan: Plan) -> str | None:
    """Why Firehose's function makes no row of the record."""
    try:
        event = read_event(record.value) if record.value else None
        if event is not None:
            LogRows(plan.tables[0], plan).row(event, Place(0, 0), 0)
    except RefusedEvent as refused:
        return str(refused)
    return None


@pytest.mark.slow  # by default the tests of each step below
@pytest.mark.parametrize("seed", [0, 1])
def test_both_ways_end_equal(spark: SparkSession, seed: int) -> None:
    both_ways(spark, *TABLES[(seed * 5) % len(TABLES)]).by_firehose(seed)


@pytest.mark.slow
@pytest.mark.parametrize("tens", [*reversed(range(10))])  # those that take longest are not last
def test_a_hundred_seeds_of_all_tables_end_equal(spark: SparkSession, tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        both = both_ways(spark, *TABLES[(2 * tens + seed % 2) % len(TABLES)])
        both.by_firehose(seed, at_once=40, applies=0.7, looks=False)


def test_firehose_refuses_no_recorded_event_but_what_json_cannot_say() -> None:
    for name, lake_name in TABLES:
        recording = Recording.load(name)
        plan = under_a_new_name(recording, lake_name)
        records = recording.of_topic(plan.tables[0].topic)
        refused = {why.partition(":")[0] for record in records if (why := refusal(record, plan))}
        assert refused <= {"NON_FINITE", "NOT_REPRESENTABLE"}, (name, lake_name)


@pytest.fixture
def log(spark: SparkSession) -> FirehoseLog:
    return FirehoseLog(spark, plan_of())


GONE = {"id": 1, "v": None, "big": None}  # of a delete, all that has to be right is the key


def rows(log: FirehoseLog, *events: dict[str, Any], first: int = 0) -> list[dict[str, Any]]:
    """The rows that Firehose makes of events, in the events' order."""
    source = {"schema": log.table.schema, "table": log.table.table}
    for event in events:
        event["value"]["source"] |= source
    raw = [log.engine.record(first + number, event) for number, event in enumerate(events)]
    done = log.deliver([Record(topic, p, at, key, value) for topic, p, at, key, value, _ in raw])
    assert done.kept.failures == []
    return [dict(row) for row in done.rows]


def test_a_commit_that_brings_earlier_rows_is_seen_at_once_and_applied(log: FirehoseLog) -> None:
    """A bound by the moment of ingestion would never apply what the second commit brings."""
    e = log.engine.event
    early, late = rows(log, e("c", 10, 10, v="a", big="B"), e("u", 20, 20, v="b", big=...))
    early["cdc_ingested_at"] -= HOUR
    log.commit([late])
    assert log.apply() == 1
    assert log.state() == [(1, "b", None)]
    log.commit([early, early])
    assert log.state() == [(1, "b", None)]
    assert log.current() == [(1, "b", "B")]
    log.apply()
    assert log.state() == log.current() == [(1, "b", "B")]
    assert log.apply() == 0


@pytest.mark.slow
def test_a_changed_key_takes_along_a_value_that_was_committed_after_it(log: FirehoseLog) -> None:
    """Whatever of an older one it had taken along before, in state and view."""
    e = log.engine.event
    made, changed, left, moved, grown = rows(
        log, e("c", 10, 10, v="a", big="A"), e("u", 20, 20, v="b", big="B"),
        e("d", 30, 30, before=GONE), e("c", 30, 30, id=2, v="b", big=...),
        e("u", 40, 40, id=2, v="c", big=...),
    )  # fmt: skip
    for hour, row in enumerate((left, moved, made, changed)):
        row["cdc_ingested_at"] += hour * HOUR
        log.commit([row])
        log.apply()
    assert log.state() == log.current() == [(2, "b", "B")]
    grown["cdc_ingested_at"] += 5 * HOUR
    log.commit([grown])
    log.apply()
    assert log.state() == log.current() == [(2, "c", "B")]


@pytest.mark.slow  # by default test_views_agree.py
def test_a_view_shows_a_changed_key_with_what_is_not_applied_yet(log: FirehoseLog) -> None:
    e = log.engine.event
    made, changed, left, moved = rows(
        log, e("c", 10, 10, v="a", big="A"), e("u", 20, 20, v="b", big="B"),
        e("d", 30, 30, before=GONE), e("c", 30, 30, id=2, v="b", big=...),
    )  # fmt: skip
    log.commit([left, moved, made])
    log.apply()
    assert log.state() == [(2, "b", "A")]
    changed["cdc_ingested_at"] += HOUR
    log.commit([changed])
    assert (log.state(), log.current()) == ([(2, "b", "A")], [(2, "b", "B")])


@pytest.mark.slow  # by default the next test, with fewer commits
def test_a_new_epoch_sweeps_what_its_snapshot_does_not_bring(log: FirehoseLog) -> None:
    e = log.engine.event
    log.commit(rows(log, e("c", 10, 10, v="a"), e("c", 10, 11, id=2, v="gone")))
    log.apply(epoch=1)
    log.commit(rows(log, e("r", 50, 50, v="new", epoch=2), first=2))
    both = [(1, "new", None), (2, "gone", None)]
    assert log.current() == both  # the snapshot may bring more
    log.apply(epoch=1)
    assert log.state() == log.current() == both
    log.apply(epoch=2)
    assert log.state() == log.current() == [(1, "new", None)]
    log.commit(rows(log, e("u", 12, 12, id=2, v="late"), first=3))  # of the epoch before
    assert log.current() == [(1, "new", None)]
    log.apply(epoch=2)
    assert log.state() == [(1, "new", None)]
    log.rebuild()
    assert log.state() == [(1, "new", None)]


@pytest.mark.slow
def test_a_table_is_swept_of_which_the_new_snapshot_has_no_row(log: FirehoseLog) -> None:
    e = log.engine.event
    log.commit(rows(log, e("c", 10, 10, v="a")))
    log.apply(epoch=1)
    assert log.apply(epoch=1) == 0
    log.apply(epoch=2)
    assert log.state() == log.current() == []
    applied = applied_through(log.engine.lake, log.table)
    assert applied.floor == history_part(str(epoch_start(2)))
    log.rebuild()
    assert log.state() == []


@pytest.mark.slow  # by default rows that a commit brings
def test_rows_that_were_packed_meanwhile_are_not_taken_for_applied_ones(log: FirehoseLog) -> None:
    e = log.engine.event
    made = rows(log, *(e("c", 10, 10 + n, id=n, v=str(n)) for n in range(8)))
    for row in made[:4]:
        log.commit([row])
    log.apply()
    for row in made[4:]:
        log.commit([row])
    compact_files(
        MaintainedTable(
            log.engine.lake, log.table, log.table.changes, datetime.now(UTC), timedelta(90)
        )
    )
    files = log.engine.lake.read(log.table.changes).inputFiles()
    assert len(files) < 8
    assert log.current() == [(n, str(n), None) for n in range(8)]
    log.apply()
    assert log.state() == [(n, str(n), None) for n in range(8)]
