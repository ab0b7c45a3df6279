"""An unsent value follows its row over any number of key changes: merge, rebuild and collapse."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from cdclake.jobs.apply import key_changes
from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.jobs.maintenance.changelog_compaction import Collapse
from tests.spark.events import Engine

pytestmark = pytest.mark.spark

NOW = datetime.now(UTC)
OLD = NOW - timedelta(days=200)
LENGTH = 200
IngestAt = Callable[[datetime], None]


@pytest.fixture
def ingest_at(monkeypatch: pytest.MonkeyPatch) -> IngestAt:
    def set_clock(moment: datetime) -> None:
        nanos = int(moment.timestamp() * 1_000_000) * 1000
        monkeypatch.setattr("cdclake.jobs.iceberg.commit_metadata.time.time_ns", lambda: nanos)

    return set_clock


@pytest.fixture
def doublings(monkeypatch: pytest.MonkeyPatch) -> list[DataFrame]:
    """The calls that resolve chains which are longer than the steps back."""
    calls: list[DataFrame] = []
    original = key_changes._doubled

    def counted(spans: DataFrame, *more: Any) -> DataFrame:
        calls.append(spans)
        return original(spans, *more)

    monkeypatch.setattr(key_changes, "_doubled", counted)
    return calls


def moves(engine: Engine, first: int, last: int) -> list[dict[str, Any]]:
    """Changes of one row's key from `first` to `last`, one at a time, without its large value."""
    events = []
    for old in range(first, last):
        lsn = 100 + old
        events += [
            engine.event("d", lsn - 1, lsn, id=old),
            engine.event("c", lsn - 1, lsn, id=old + 1, v=str(old), big=...),
        ]
    return events


def collapse(engine: Engine) -> None:
    Collapse(
        lake=engine.lake,
        table=engine.table,
        before=(NOW - timedelta(days=90)).date(),
        tombstones_since=NOW - timedelta(days=14),
    ).run()


@pytest.mark.slow
@pytest.mark.parametrize("batches", [1, 4])
def test_value_follows_any_chain(spark: SparkSession, batches: int) -> None:
    engine = Engine(spark)
    engine.run(engine.event("c", 5, 5, id=0, v="first", big="A"))
    step = LENGTH // batches
    for start in range(0, LENGTH, step):
        engine.run(*moves(engine, start, start + step))
    expected = {LENGTH: (str(LENGTH - 1), "A")}
    assert engine.state() == expected
    rebuild_state(engine.lake, engine.table)
    assert engine.state() == expected


@pytest.mark.slow  # by default the catalogue has a chain, P5-a-chain-of-changed-keys
def test_short_chain_needs_no_doubling(spark: SparkSession, doublings: list[DataFrame]) -> None:
    steps = key_changes._MAX_STEPS_BACK
    engine = Engine(spark)
    engine.run(engine.event("c", 5, 5, id=0, v="first", big="A"), *moves(engine, 0, steps))
    assert engine.state() == {steps: (str(steps - 1), "A")}
    assert doublings == []
    engine.run(*moves(engine, steps, steps + 1))
    assert engine.state() == {steps + 1: (str(steps), "A")}
    assert len(doublings) == 1


@pytest.mark.slow
def test_long_chain_takes_the_newest_value(spark: SparkSession) -> None:
    """Values of other rows that had one of the keys before or after do not count."""
    steps = key_changes._MAX_STEPS_BACK
    middle, last = steps // 2, 2 * steps
    engine = Engine(spark)
    e = engine.event
    engine.run(
        e("c", 1, 1, id=middle, v="x", big="earlier row"), e("d", 2, 2, id=middle),
        e("c", 3, 3, id=middle + 1, v="x", big="earlier row"), e("d", 4, 4, id=middle + 1),
        e("c", 5, 5, id=0, v="first", big="A"), *moves(engine, 0, middle),
        e("u", 100 + middle - 1, 100 + middle - 1, id=middle, v="sent", big=None),
        *moves(engine, middle, last),
        e("c", 500, 500, id=1, v="x", big="later row"),
        e("d", 510, 510, id=1), e("c", 510, 510, id=900, v="moved", big=...),
        e("d", 520, 520, id=last), e("c", 520, 520, id=901, v="end", big=...),
    )  # fmt: skip
    assert engine.state() == {900: ("moved", "later row"), 901: ("end", None)}
    [row] = engine.lake.read(engine.table.name).where("id = 901").collect()
    assert row["cdc_toast_missing"] is None  # the NULL was sent


@pytest.mark.slow
@pytest.mark.parametrize("before, after", [(2, 1), (150, 50)])
def test_chain_survives_a_collapse_in_its_middle(
    spark: SparkSession, ingest_at: IngestAt, before: int, after: int
) -> None:
    engine = Engine(spark)
    ingest_at(OLD)
    left, created, *later = moves(engine, before, before + after)
    engine.run(engine.event("c", 5, 5, id=0, v="first", big="A"), *moves(engine, 0, before), left)
    ingest_at(NOW)
    engine.run(created, *later)
    expected = {before + after: (str(before + after - 1), "A")}
    assert engine.state() == expected
    rows = engine.lake.read(engine.table.changes).count()
    collapse(engine)
    assert engine.lake.read(engine.table.changes).count() < rows
    rebuild_state(engine.lake, engine.table)
    assert engine.state() == expected


def test_doubling_takes_no_value_of_another_row_at_the_same_position(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, doublings: list[DataFrame]
) -> None:
    """Rows of a snapshot in two Kafka partitions may have one position."""
    monkeypatch.setattr(key_changes, "_MAX_STEPS_BACK", 1)
    engine = Engine(spark)
    for keys in ((0, 50), (60, 10)):  # the row is in partition 0, then in partition 1
        snapshot = [
            (topic, partition, engine.next_offset, *sent)
            for partition, key in enumerate(keys)
            for topic, _, _, *sent in [engine.record(0, read(engine, key))]
        ]
        offsets = (engine.next_offset, engine.next_offset + 1)
        engine.run_records(snapshot, {0: offsets, 1: offsets})
        engine.next_offset += 1
    assert len({row["cdc_position"] for row in engine.log()}) == 2
    engine.run(*moves(engine, 0, 2), *moves(engine, 10, 12))
    assert len(doublings) == 1
    big = {key: values[1] for key, values in engine.state().items()}
    assert big == {2: "0", 12: "10", 50: "50", 60: "60"}


def read(engine: Engine, key: int) -> dict[str, Any]:
    return engine.event("r", None, 5, id=key, v="read", big=str(key))
