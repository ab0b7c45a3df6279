"""Rules with `on: quarantine`: events whose row breaks one stay out of the lake, and come back."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import just_after
from cdclake.debezium.refusals import BROKEN_RULE
from cdclake.debezium.row_rules import RowRules
from cdclake.debezium.types import type_in_plan
from cdclake.iceberg import snapshot_tags
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.limit_condition import broken_limit
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.maintenance import actions, snapshot_expiration
from cdclake.jobs.maintenance.actions import MaintainedTable, compact_files
from cdclake.jobs.maintenance.table_maintenance import chosen_maintained, maintain
from cdclake.jobs.operations import executor, replay
from cdclake.jobs.operations.replay import replay_quarantine
from cdclake.jobs.operations.stale_rows import count_read_rows, delete_stale_rows
from cdclake.jobs.stream.refusal_reasons import broken_rules, first_reason
from cdclake.jobs.stream.table_errors import judge
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.jobs.table_jobs.table_reports import report_table
from cdclake.plan import Column, Plan
from cdclake.quality_rule import QualityRule, ValueLimit
from tests.spark.events import Engine, MemoryStore, plan_of
from tests.spark.listeners import Meanwhile

pytestmark = pytest.mark.spark

LIMITS = (
    ValueLimit(column="v", test="in", allowed=("new", "paid")),
    ValueLimit(column="big", test="not_null"),
)
RULES = tuple(
    QualityRule(name=f"{limit.test}({limit.column})", kind="rows", limit=limit) for limit in LIMITS
)


def without_rules(engine: Engine) -> Plan:
    """The engine's plan after its rules are removed from the file."""
    return replace(engine.plan, tables=(replace(engine.table, checks=()),))


@pytest.fixture
def engine(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """A table with the rules; replays take the events of these tests, which are of 2023."""
    monkeypatch.setattr(replay, "replay_age", lambda *_: None)
    return Engine(spark, plan_of(checks=RULES))


def reasons(engine: Engine) -> dict[int, str]:
    """By offset what withholds an event."""
    return {row["offset"]: row["reason"] for row in engine.quarantined()}


def test_withheld_events_leave_the_row_of_the_others(engine: Engine) -> None:
    e, unsent = engine.event, ...
    done = engine.run(
        e("c", 10, 10, id=1, v="new", big="A"),
        e("u", 20, 20, id=1, v="odd", big="B"),  # withheld: the row stays as it was
        e("c", 30, 30, id=2, v="odd", big="A"),  # withheld: no row
        e("c", 40, 40, id=3, v="odd", big="A"),
        e("u", 50, 50, id=3, v="paid", big=unsent),  # a row, without the value of the insert
        e("c", 60, 60, id=4, v="new", big=None),
        e("d", 70, 70, id=4),  # a delete is never withheld
        e("c", 80, 80, id=5, v="new", big="E"),
        e("d", 90, 90, id=5),  # the key changes from 5 to 6, and the new row is withheld
        e("c", 90, 90, id=6, v="odd", big=unsent),
        e("r", 100, 100, id=7, v="odd", big="R"),
    )
    assert (done.quarantined, done.appended) == (0, 5)  # none counts towards stop_table_after
    assert engine.state() == {1: ("new", "A"), 3: ("paid", None)}
    said = "is broken by column"
    assert reasons(engine) == {
        **dict.fromkeys((1, 2, 3, 9, 10), f"{BROKEN_RULE}: in(v) {said} 'v' with the value odd"),
        5: f"{BROKEN_RULE}: not_null(big) {said} 'big' with the value NULL",
    }
    same = replay_quarantine(engine.stream(), epoch=1)
    assert same.released == 0
    assert same.refused == {
        f"{BROKEN_RULE}: in(v) {said} 'v'": 5, f"{BROKEN_RULE}: not_null(big) {said} 'big'": 1,
    }  # fmt: skip
    engine.declare(without_rules(engine))
    back = replay_quarantine(engine.stream(), epoch=1)
    assert (back.replayed, back.known, back.withheld, back.refused) == (6, 0, 6, {})
    assert engine.quarantined() == []
    assert engine.state() == {
        1: ("odd", "B"), 2: ("odd", "A"), 3: ("paid", "A"), 6: ("odd", "E"), 7: ("odd", "R"),
    }  # fmt: skip


@pytest.mark.slow
def test_withheld_events_never_stop_the_table(engine: Engine) -> None:
    e, stream = engine.event, engine.stream()
    engine.plan = replace(engine.plan, stop_table_after=2)
    odd = [e("c", n, n, id=n, v="odd", big="A") for n in range(10, 15)]
    outcome = engine.run(*odd, (b'{"id": 7}', b"{rubbish"))
    assert outcome.quarantined == 1
    judge(engine.stream(), outcome)
    assert (stream.place.quarantined, stream.place.is_streaming) == (1, True)
    engine.declare(without_rules(engine))
    progress = Progress(tables={engine.table.name: engine.place})
    executor._replay(progress, engine.stream())
    assert engine.place.quarantined == 1  # the unreadable event still counts


def test_a_dropped_column_stops_the_table_though_a_rule_withholds_its_rows(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="new", big="A"))
    lacking = e("u", 20, 20, id=1, v="new")
    del lacking["value"]["after"]["big"]
    done = engine.run(lacking)
    assert done.drift is not None
    assert (done.drift.gone, engine.quarantined()) == (("big",), [])


@pytest.mark.slow
def test_a_resync_keeps_the_rows_that_it_reads_and_a_rule_withholds(engine: Engine) -> None:
    e = engine.event
    engine.run(
        e("c", 10, 10, id=1, v="new", big="A"), e("c", 11, 11, id=2, v="new", big="B"),
        e("c", 12, 12, id=3, v="new", big="C"),
    )  # fmt: skip
    request = str(just_after(engine.log()[-1]["cdc_position"]))
    engine.run(  # the source has changed 1 to a row that is withheld, and no longer has 3
        e("r", 20, 20, id=1, v="odd", big="A", incremental=True),
        e("r", 20, 20, id=2, v="new", big="B", incremental=True),
    )
    assert count_read_rows(engine.stream(), request) == 2
    assert delete_stale_rows(engine.stream(), request) == 1
    assert engine.state() == {1: ("new", "A"), 2: ("new", "B")}


def withhold(engine: Engine, *keys: int) -> None:
    """Put a withheld event of each key into the quarantine, in a file of its own."""
    for key in keys:
        engine.run(engine.event("c", key, key, id=key, v="odd", big="A"))


@pytest.mark.slow
def test_the_quarantine_is_compacted_and_its_old_snapshots_go(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "MIN_SMALL_FILES", 2)
    monkeypatch.setattr(snapshot_tags, "EVERY", timedelta(seconds=2))
    monkeypatch.setattr(snapshot_expiration, "KEEP_EVERY_COMMIT_FOR", timedelta(0))
    withhold(engine, 10, 11, 12)
    for _ in range(4):  # within one or two of the short hours
        engine.lake.load(naming.QUARANTINE).newFastAppend().commit()
    time.sleep(2)
    control: Any = MemoryStore()
    job = TableJob(engine.plan, engine.lake, engine.leases, control, named=False)
    [_, quarantine] = chosen_maintained(engine.plan, None)
    report = report_table(engine.lake, quarantine, partial(maintain, job, quarantine))
    assert (report.table, report.error, report.files_after) == (naming.QUARANTINE, None, 1)
    assert report.files_before > 2
    assert report.snapshots_after < report.snapshots_before
    assert reasons(engine).keys() == {0, 1, 2}
    withhold(engine, 13)
    engine.declare(without_rules(engine))
    assert replay_quarantine(engine.stream(), epoch=1).replayed == 4
    assert engine.quarantined() == []


@pytest.mark.slow
def test_a_replay_that_lost_to_a_compaction_of_the_quarantine_is_done_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The next scan after the last count of withheld events is the one that deletes them."""
    monkeypatch.setattr(actions, "MIN_SMALL_FILES", 2)
    withhold(engine, 10, 11)
    now, count = datetime.now(UTC), replay._withheld
    upkeep = MaintainedTable(engine.lake, None, naming.QUARANTINE, now, timedelta(days=90))
    counted: list[int] = []

    def withheld(stream: Any) -> int:
        counted.append(count(stream))
        return counted[-1]

    def meanwhile() -> None:
        if counted:
            compact_files(upkeep)

    monkeypatch.setattr(replay, "_withheld", withheld)
    engine.declare(without_rules(engine))
    with Meanwhile(engine.spark).at_scan_of(naming.QUARANTINE, meanwhile, times=100):
        done = replay_quarantine(engine.stream(), epoch=1)
    assert f"table {naming.QUARANTINE}: try 1 lost to another writer" in caplog.text
    assert (done.replayed, done.withheld, engine.quarantined()) == (2, 2, [])


EDGES: tuple[tuple[str, tuple[Any, ...], tuple[str, ...]], ...] = (
    ("integer", (-1, 0, 2, None), ("0", "1")),
    ("real", (0.1, -0.0, 0.25, float("nan"), float("inf"), None), ("0", "0.1")),
    ("double precision", (0.1, -0.0, float("nan"), float("-inf"), None), ("0", "0.1")),
    ("boolean", (True, False, None), ("false",)),
    ("text", ("", "a", "B", "é", "😀", "\uffff", None), ("a", "\uffff")),
    ("numeric(5,2)", ("-0.00", "0.010", "00.5", "1.005", "NaN", "999.99", None), ("0", "0.01")),
    ("money", ("0.00", "12.50", None), ("12.5",)),
    ("date", (0, -1, -719529, 20000, 2147483647, None), ("1970-01-01", "2024-10-04")),
    ("timestamp", (0, -1, 1_000_001, 9223372036854775807, None), ("1970-01-01T00:00:01",)),
    ("timestamptz", ("1970-01-01T00:00:01Z", "-0044-03-15T12:00:00Z", "+12345-01-01T00:00:00.5Z",
                     "2026-01-31T10:00:00.123456Z", "infinity", None),
     ("1970-01-01T00:00:01", "2026-01-31T12:00:00.123456+02:00", "9999-12-31T23:59:59-05:00")),
    ("time", (0, 3_600_000_001, 86_400_000_000, None), ("01:00:00.000001", "24:00:00")),
    ("bytea", ("QUJD", "", None), ()),
)  # fmt: skip


def test_sql_and_the_decoders_decide_equally(spark: SparkSession) -> None:
    """The one condition is for the rows of polls and bulk loads, the other for those of events."""
    compared = 0
    for kind, values, literals in EDGES:
        column, parsed = Column(source="v", name="v", type=kind), type_in_plan(kind)
        limits = [ValueLimit(column="v", test="not_null")]
        limits += [ValueLimit(column="v", test="in", allowed=(each,)) for each in literals]
        limits += [ValueLimit(column="v", test="range", low=each) for each in literals]
        limits += [ValueLimit(column="v", test="range", high=each) for each in literals]
        rows = spark.createDataFrame(list(enumerate(values)), f"n int, v {parsed.log}")
        shown = to_state("v", parsed, SPARK)
        conditions = [f"coalesce({broken_limit(each, shown, parsed.state)}, false)"
                      for each in limits]  # fmt: skip
        found = rows.selectExpr("n", f"array({', '.join(conditions)}) AS broken").collect()
        for index, by_sql in found:
            for limit, broken in zip(limits, by_sql, strict=True):
                rule = QualityRule(name="rule", kind="rows", limit=limit)
                table = plan_of(columns=(column,), checks=(rule,)).tables[0]
                reason = RowRules(table).reason({"v": values[index]}, ())
                assert (reason is not None) == broken, (kind, values[index], limit)
                compared += 1
    assert compared > 200


def test_rows_that_were_read_get_the_same_reason(engine: Engine) -> None:
    rows = engine.spark.createDataFrame(
        [("odd", "A"), ("new", None), ("paid", "B"), (None, "C"), ("x" * 200, "D")],
        "v string, big string",
    )
    reason = first_reason(broken_rules(engine.table)).alias("reason")
    found = [row["reason"] for row in rows.select(F.col("v"), reason).collect()]
    slow = RowRules(engine.table)
    expected = [slow.reason(row.asDict(), ()) for row in rows.collect()]
    assert found[:4] == expected[:4]
    assert expected[4] == f"{found[4]}..."
