"""Old days of a log collapse, and the state that is rebuilt from it stays what it was."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrameWriterV2

from cdclake.iceberg.schemas import changes_schema, state_schema
from cdclake.jobs.apply.rebuilt_state import applied_through, rebuild_state
from cdclake.jobs.maintenance.changelog_compaction import Collapse
from cdclake.jobs.publish.copied_rows import StateSnapshot
from cdclake.jobs.publish.copy_stamp import CopyStamp
from cdclake.jobs.reader.catalog import parse_table
from tests.spark.events import Engine, plan_of
from tests.spark.test_changelog_readers import Reader

pytestmark = pytest.mark.spark

NOW = datetime.now(UTC)
OLD = NOW - timedelta(days=200)
MICROS = 1_000_000


@pytest.fixture
def ingest_at(monkeypatch):
    return partial(set_clock, monkeypatch)


def set_clock(patched: pytest.MonkeyPatch, moment: datetime) -> None:
    """Have what is ingested from now on be of that moment."""
    nanos = int(moment.timestamp() * MICROS) * 1000
    patched.setattr("cdclake.jobs.iceberg.commit_metadata.time.time_ns", lambda: nanos)


def collapse(engine: Engine, *, days: int = 90, horizon: int = 14) -> None:
    Collapse(
        lake=engine.lake,
        table=engine.table,
        before=(NOW - timedelta(days=days)).date(),
        tombstones_since=NOW - timedelta(days=horizon),
    ).run()


def state(engine: Engine) -> list[Any]:
    """Everything in the state that a reader or a later merge looks at."""
    rows = engine.lake.read(engine.table.name).orderBy("id")
    return rows.select(
        "id", "v", "big", "cdc_position", "cdc_deleted", "cdc_toast_missing"
    ).collect()


def events(engine: Engine) -> list[tuple[str, Any, Any, Any]]:
    return [(row["cdc_op"], row["id"], row["v"], row["big"]) for row in engine.log()]


def ingest_old_events(engine: Engine, ingest_at: Callable[[datetime], None]) -> None:
    """Ingest events of keys that end in each way: deleted, truncated, changed, without a value."""
    e = engine.event
    ingest_at(OLD)
    engine.run(
        e("c", 5, 5, id=8, v="truncated away"), e("t", 6, 6, id=None),
        e("c", 10, 10, v="1", big="A"),
        e("u", 20, 20, v="2", big=...), e("u", 30, 30, v="3", big=...),
        e("c", 40, 40, id=2, v="x", big="B"), e("d", 50, 50, id=2),
    )  # fmt: skip
    ingest_at(NOW - timedelta(days=100))  # committed long before: the source was far behind
    engine.run(
        e("c", 51, 51, id=3, v="x", big="C"), e("d", 52, 52, id=3),
        e("c", 53, 53, id=4, v="y", big="D"), e("d", 60, 60, id=4, tx=7),
        e("c", 60, 60, id=5, v="y", big=..., tx=7),
        e("u", 61, 61, id=6, v="never sent", big=...),
        e("c", 62, 62, id=7, v="z", big="E"), e("d", 70, 70, id=7, tx=8),
        e("c", 63, 63, id=9, v="former row", big="F"), e("d", 64, 64, id=9),
        e("c", 65, 65, id=9, v="no value of it", big=...), e("u", 66, 66, id=9, v="nor", big=...),
    )  # fmt: skip


def test_old_events_become_the_newest_of_each_key(spark, ingest_at) -> None:
    engine = Engine(spark)
    e = engine.event
    ingest_old_events(engine, ingest_at)
    ingest_at(NOW)
    engine.run(e("c", 70, 70, id=70, v="z", big=..., tx=8), e("u", 80, 80, v="4", big=...))
    before = state(engine)

    collapse(engine, horizon=150)

    assert events(engine) == [
        ("t", None, None, None),
        ("u", 1, "3", "A"),
        ("d", 3, None, None),
        ("d", 4, None, None),
        ("c", 5, "y", "D"),
        ("u", 6, "never sent", None),
        ("c", 7, "z", "E"),  # the creation of its next key is not old: it still needs them
        ("u", 9, "nor", None),
        ("d", 7, None, None),
        ("c", 70, "z", None),
        ("u", 1, "4", None),
    ]
    rebuild_state(engine.lake, engine.table)
    purged = [row for row in before if row["id"] != 2]  # a delete that nothing can undo any more
    assert state(engine) == purged
    snapshot = engine.lake.stamped(engine.table.changes)
    collapse(engine, horizon=150)
    assert engine.lake.stamped(engine.table.changes) == snapshot
    engine.run(e("u", 80, 80, v="4", big=...))  # sent again: the marks are as they were
    assert len(events(engine)) == 11


@pytest.mark.slow  # by default the first test, under hard deletes
def test_soft_deletes_keep_their_values(spark, ingest_at) -> None:
    engine = Engine(spark, plan_of(deletes="soft"))
    e = engine.event
    ingest_at(OLD)
    engine.run(e("c", 10, 10, v="1", big="A"), e("u", 20, 20, v="2", big=...), e("d", 30, 30))
    engine.run(e("c", 31, 31, id=3, v="truncated"), e("t", 32, 32, id=None))
    ingest_at(NOW)
    engine.run(e("c", 40, 40, id=2, v="x"))
    before = state(engine)
    collapse(engine)
    assert events(engine)[:4] == [
        ("u", 1, "2", "A"), ("d", 1, None, None), ("c", 3, "truncated", None),
        ("t", None, None, None),
    ]  # fmt: skip
    rebuild_state(engine.lake, engine.table)
    assert state(engine) == before


@pytest.mark.slow
def test_rows_that_nothing_has_changed_are_not_written_again(spark, ingest_at) -> None:
    """The next old day has to have an event that replaces or deletes one of before."""
    engine = Engine(spark)
    e = engine.event
    for days, id in ((200, 1), (150, 2), (100, 3)):
        ingest_at(NOW - timedelta(days=days))
        engine.run(e("c", id, id, id=id))
    ingest_at(NOW - timedelta(days=85))
    engine.run(e("c", 9, 9, id=9))
    changes = engine.table.changes
    snapshot = engine.lake.stamped(changes)
    for days in (180, 90):
        collapse(engine, days=days)
        assert engine.lake.stamped(changes) == snapshot
        properties = engine.lake.load(changes).properties()
        assert properties.get("cdclake.collapsed-before") is None
        assert properties.get("cdclake.collapse-complete") == str(
            (NOW - timedelta(days=days)).date()
        )
    ingest_at(NOW - timedelta(days=80))
    engine.run(e("u", 30, 30, id=1, v="1"), e("u", 31, 31, id=1, v="2"))
    ingest_at(NOW)
    engine.run(e("u", 40, 40, id=9, v="3"))
    collapse(engine, days=60)
    assert events(engine) == [
        ("c", 2, None, None), ("c", 3, None, None), ("c", 9, None, None),
        ("u", 1, "2", None), ("u", 9, "3", None),
    ]  # fmt: skip


def test_what_is_not_applied_stays_and_little_new_waits(spark, ingest_at) -> None:
    engine = Engine(spark)
    e = engine.event
    ingest_at(OLD)
    engine.run(*(e("c", 10, 10 + n, id=n, v="a") for n in range(6)))
    ingest_at(OLD + timedelta(days=1))
    engine.run(e("u", 30, 30, v="b"), e("u", 31, 31, v="c"), apply_now=False)
    ingest_at(NOW)
    collapse(engine)
    assert len(events(engine)) == 8
    engine.run(e("c", 40, 40, id=9, v="d"))
    collapse(engine, days=200)  # up to OLD's own day
    assert len(events(engine)) == 9
    collapse(engine, days=199)
    assert len(events(engine)) == 9  # six rows are collapsed, none has come since
    collapse(engine, days=100)
    assert len(events(engine)) == 9  # two have come since: too few


@pytest.mark.slow
def test_what_a_dropped_column_held_last_stays(spark, ingest_at) -> None:
    engine = Engine(spark)
    e = engine.event
    ingest_at(OLD)
    engine.run(
        *(e("c", 10 + id, 10 + id, id=id, v="1", big="A") for id in (1, 2, 3, 4)),
        e("u", 20, 20, id=2, v="2", big=None),
    )
    columns = tuple(column for column in engine.table.columns if column.name != "big")
    table = replace(engine.table, columns=columns)
    engine.declare(replace(engine.plan, tables=(table,)))
    for schema in (changes_schema(table, engine.plan), state_schema(table, engine.plan)):
        engine.lake.create(schema)
    engine.run(*(e("u", 30 + id, 30 + id, id=id, v="3") for id in (1, 2, 3)), e("d", 40, 40, id=3))
    ingest_at(OLD + timedelta(days=10))
    engine.run(*(e("u", 50 + id, 50 + id, id=id, v="5") for id in (1, 2)))
    ingest_at(NOW)
    engine.run(e("u", 60, 60, id=4, v="6"))

    def held() -> list[tuple[Any, ...]]:
        return [(row["id"], row["v"], row["cdc_dropped_big"]) for row in engine.log()]

    later = [(1, "5", None), (2, "5", None), (4, "6", None)]
    collapse(engine, days=195)
    assert held() == [(4, "1", "A"), (1, "3", "A"), (2, "3", None), *later]
    collapse(engine)
    assert held() == [(4, "1", "A"), (1, "5", "A"), (2, "5", None), (4, "6", None)]


def collapsed_before(engine: Engine) -> date | None:
    """The day before which `--as-of` is refused, as the reader finds it in the metadata file."""
    name = engine.table.changes
    location = engine.lake.load(name).operations().current().metadataFileLocation()
    metadata = json.loads(Path(location.removeprefix("file:")).read_text())
    return parse_table(name, location, metadata).collapsed_before


@pytest.mark.parametrize(
    "is_committed",
    [pytest.param(True, marks=pytest.mark.slow, id="after"), pytest.param(False, id="before")],
)
def test_killed_around_its_commit_the_collapse_is_refused_to_as_of_and_done_again(
    spark, ingest_at, is_committed: bool
) -> None:
    engine = Engine(spark)
    e = engine.event
    ingest_at(OLD)
    engine.run(*(e("u", 10 + n, 10 + n, v=f"{n}") for n in range(6)))
    ingest_at(NOW)
    engine.run(e("u", 30, 30, v="new"))
    overwrite = DataFrameWriterV2.overwrite

    def killed(writer: DataFrameWriterV2, condition: Any) -> None:
        if is_committed:
            overwrite(writer, condition)
        raise KeyboardInterrupt

    assert collapsed_before(engine) is None
    with pytest.MonkeyPatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(DataFrameWriterV2, "overwrite", killed)
        collapse(engine)
    assert len(events(engine)) == (2 if is_committed else 7)
    refused = (NOW - timedelta(days=90)).date()
    assert collapsed_before(engine) == refused, "earlier rows may be missing"
    collapse(engine)
    assert [row[2] for row in events(engine)] == ["5", "new"]
    assert collapsed_before(engine) == refused


@pytest.mark.slow
def test_a_stream_reads_on_over_a_collapse_only_if_it_skips_overwrites(
    spark, ingest_at, tmp_path
) -> None:
    """As docs/how-to/stream-a-changelog.md says of its readers."""
    engine = Engine(spark)
    e = engine.event
    reader = Reader(spark, f"lake.cdc.{engine.table.changes}", tmp_path)
    ingest_at(OLD)
    engine.run(*(e("u", 10 + n, 10 + n, v=f"{n}") for n in range(4)))
    ingest_at(NOW)
    engine.run(e("u", 30, 30, v="a"))
    reader.run()
    collapse(engine)
    assert [row["cdc_lsn"] for row in engine.log()] == [13, 30]
    engine.run(e("u", 40, 40, v="b"), apply_now=False)
    with pytest.raises(StreamingQueryException, match="overwrite"):
        reader.run()
    reader.options = {"streaming-skip-overwrite-snapshots": "true"}
    reader.run()
    assert sorted(reader.received) == [10, 11, 12, 13, 30, 40]


@pytest.mark.slow
def test_a_collapse_that_leaves_no_old_row_is_a_delete(spark, ingest_at, tmp_path) -> None:
    """A queue's rows are all deleted: docs/how-to/stream-a-changelog.md names both options."""
    engine = Engine(spark)
    e = engine.event
    reader = Reader(spark, f"lake.cdc.{engine.table.changes}", tmp_path)
    ingest_at(OLD)
    engine.run(e("c", 10, 10, v="a"), e("d", 11, 11))
    ingest_at(NOW)
    engine.run(e("c", 30, 30, v="a"))
    reader.run()
    collapse(engine)
    assert [row["cdc_lsn"] for row in engine.log()] == [30]
    engine.run(e("c", 40, 40, v="b"), apply_now=False)
    reader.options = {"streaming-skip-overwrite-snapshots": "true"}
    with pytest.raises(StreamingQueryException, match="streaming-skip-delete-snapshots"):
        reader.run()
    reader.options["streaming-skip-delete-snapshots"] = "true"
    reader.run()
    assert sorted(reader.received) == [10, 11, 30, 40]


@pytest.mark.slow
def test_a_copy_without_what_has_collapsed_is_written_as_a_whole(spark, ingest_at) -> None:
    engine = Engine(spark)
    e = engine.event
    ingest_at(OLD)
    engine.run(e("c", 10, 10, v="a"), e("c", 11, 11, id=2, v="b"))
    late = copied(engine)
    ingest_at(OLD + timedelta(days=1))
    engine.run(e("d", 20, 20, id=2))
    ingest_at(NOW)
    engine.run(e("u", 30, 30, v="c"))
    recent = copied(engine)
    engine.run(e("u", 40, 40, v="d"))
    source = StateSnapshot.open(engine.lake, engine.table)
    assert source is not None and source.since(late) is not None
    collapse(engine)
    source = StateSnapshot.open(engine.lake, engine.table)
    assert source is not None and source.since(late) is None, "the delete is no longer there"
    assert source.since(recent) is not None


def copied(engine: Engine) -> CopyStamp:
    """The stamp of a copy of the state as it is."""
    applied = applied_through(engine.lake, engine.table)
    return CopyStamp(applied.ingested, applied.floor, "", "")
