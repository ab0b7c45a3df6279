"""Upkeep on real Iceberg tables: what may go, what the jobs still need, and what is left alone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from cdclake.iceberg.collapse import TOMBSTONE_HORIZON
from cdclake.jobs.maintenance import actions
from cdclake.jobs.maintenance.actions import (
    MaintainedTable,
    compact,
    compact_files,
    purge_tombstones,
)
from cdclake.jobs.reader.duck import extension_file
from cdclake.jobs.stream import table_stream
from tests.spark.events import Engine, deletes_to_open, plan_of

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("deletes", ["hard", pytest.param("soft", marks=pytest.mark.slow)])
def test_tombstones_are_purged_when_nothing_can_revive_their_rows(
    spark: SparkSession, deletes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D12: those ingested before the horizon only, and under soft deletes none.

    All were committed long ago: a source that is behind hands over old deletes, and what they
    deleted is in Kafka as long as they are.
    """
    engine = Engine(spark, plan_of(deletes=deletes))
    now, e = datetime.now(UTC), engine.event
    ages = {1: TOMBSTONE_HORIZON + timedelta(hours=1), 2: TOMBSTONE_HORIZON - timedelta(hours=1)}
    committed = int((now - 2 * TOMBSTONE_HORIZON).timestamp() * 1_000_000)

    def ingest_at(moment: datetime) -> None:
        micros = int(moment.timestamp() * 1_000_000)
        monkeypatch.setattr(table_stream, "moment_after", lambda _: micros)

    ingest_at(now - 2 * TOMBSTONE_HORIZON)
    engine.run(*(e("c", 10, 10 + key, id=key, v="a", ts=committed) for key in (1, 2, 3)))
    for key, age in ages.items():
        ingest_at(now - age)
        engine.run(e("d", 30, 30 + key, id=key, ts=committed))
    monkeypatch.undo()
    state = MaintainedTable(engine.lake, engine.table, engine.table.name, now, timedelta(days=90))
    log = MaintainedTable(engine.lake, engine.table, engine.table.changes, now, timedelta(days=90))
    for upkeep in (state, log, state):
        purge_tombstones(upkeep)
    rows = engine.lake.read(engine.table.name).select("id").collect()
    assert {row["id"] for row in rows} == ({1, 2, 3} if deletes == "soft" else {2, 3})
    assert (engine.state(), len(engine.log())) == ({3: ("a", None)}, 5)
    engine.run(e("u", 25, 25, id=2, v="late"))
    assert engine.state() == {3: ("a", None)}


@pytest.mark.slow
def test_a_tombstone_stays_while_a_view_may_overlay_an_older_event(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A redriven update of a deleted row, in the tail of Athena's view while the table is quiet."""
    engine, now = Engine(spark), datetime.now(UTC)
    e = engine.event

    def run(age: timedelta, *events: dict[str, object]) -> None:
        micros = int((now - age).timestamp() * 1_000_000)
        monkeypatch.setattr(table_stream, "moment_after", lambda _: micros)
        engine.run(*events)

    def purge(at: datetime) -> set[int]:
        purge_tombstones(
            MaintainedTable(
                engine.lake, engine.table, engine.table.name, at, timedelta(days=90),
                lateness=timedelta(minutes=20),
            )
        )  # fmt: skip
        rows = engine.lake.read(engine.table.name).where("cdc_deleted").select("id").collect()
        return {row["id"] for row in rows}

    committed = int((now - 2 * TOMBSTONE_HORIZON).timestamp() * 1_000_000)
    run(timedelta(days=17), *(e("c", 10, 10 + key, id=key, v="a", ts=committed) for key in (1, 2)))
    run(timedelta(days=16), *(e("d", 30, 30 + key, id=key, ts=committed) for key in (1, 2)))
    run(timedelta(days=15), e("u", 25, 25, id=1, v="late", ts=committed))
    an_hour_later = now + timedelta(hours=1, minutes=5)
    assert purge(now) == {1, 2}  # no stamp is an hour old
    assert purge(an_hour_later) == {1}
    run(timedelta(days=15) - timedelta(minutes=21), e("c", 40, 40, id=3, v="new"))
    assert purge(an_hour_later) == set()
    assert engine.state() == {3: ("new", None)}


def files_of(engine: Engine, name: str) -> set[str]:
    """The data files of the state or the log."""
    files = f"{engine.lake.qualified(name)}.data_files"
    return {row["file_path"] for row in engine.spark.sql(f"SELECT * FROM {files}").collect()}


@pytest.mark.slow
def test_small_files_are_packed_and_large_ones_left_alone(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(spark)
    log = engine.table.changes
    for key in range(5):
        engine.run(engine.event("c", 10, 10 + key, id=key, v="a"))
    upkeep = MaintainedTable(engine.lake, engine.table, log, datetime.now(UTC), timedelta(days=90))
    monkeypatch.setattr(actions, "LARGE_FILE_BYTES", 1)
    before = files_of(engine, log)
    compact_files(upkeep)
    assert files_of(engine, log) == before and len(before) == 5
    monkeypatch.undo()
    compact_files(upkeep)
    assert len(files_of(engine, log)) == 1
    assert len(engine.log()) == 5


def deletes_of(engine: Engine) -> list[int]:
    """How many deletes each of the state's files of them has."""
    files = f"{engine.lake.qualified(engine.table.name)}.delete_files"
    rows = engine.spark.sql(f"SELECT record_count FROM {files}").collect()
    return sorted(row["record_count"] for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
def test_a_large_file_is_written_again_only_when_a_tenth_of_it_is_deleted(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    engine = Engine(spark, replace(plan_of(), format_version=version))
    state, e = engine.table.name, engine.event
    upkeep = MaintainedTable(
        engine.lake, engine.table, state, datetime.now(UTC), timedelta(days=90)
    )
    monkeypatch.setattr(actions, "LARGE_FILE_BYTES", 1)  # then whatever was written is large
    engine.run(*(e("c", 10, 10 + key, id=key, v="a", big="A") for key in range(100)))
    [large] = files_of(engine, state)

    def maintained_after(keys: range) -> set[str]:
        for key in keys:  # a batch each, with deletes in the large file and in the last batch's
            changed = [e("u", 200, 200 + key, id=id, v="b", big=...) for id in (0, key)]
            engine.run(*changed)
        compact(upkeep)
        return files_of(engine, state)

    assert large in maintained_after(range(1, 6))
    assert deletes_of(engine)[-1] == 6
    assert large not in maintained_after(range(6, 12))
    assert engine.state() == {key: ("b" if key < 12 else "a", "A") for key in range(100)}


@pytest.mark.slow  # by default test_partition_moves.py compacts
def test_packing_leaves_one_file_that_no_deletes_concern(spark: SparkSession) -> None:
    engine = Engine(spark)
    state, e = engine.table.name, engine.event
    for batch in range(6):  # each puts a row in the place of the one before
        engine.run(e("u", 10, 10 + batch, v=str(batch)), e("c", 10, 20 + batch, id=2 + batch))
    assert sorted(deletes_to_open(engine)) == [0, 1, 1, 1, 1, 1]
    before = engine.state()
    compact(
        MaintainedTable(engine.lake, engine.table, state, datetime.now(UTC), timedelta(days=90))
    )
    assert deletes_to_open(engine) == [0]
    assert engine.state() == before == {1: ("5", None), **dict.fromkeys(range(2, 8), (None, None))}


@pytest.mark.slow
def test_compaction_sorts_the_state(spark: SparkSession) -> None:
    engine = Engine(spark, plan_of(sort_by=("v",)))
    for key, value in enumerate("fcbead"):
        engine.run(engine.event("c", 10, 10 + key, id=key, v=value))
    compact(
        MaintainedTable(
            engine.lake, engine.table, engine.table.name, datetime.now(UTC), timedelta(days=90)
        )
    )
    [file] = spark.table(f"lake.cdc.{engine.table.name}.files").collect()
    stored = pq.read_table(file["file_path"].removeprefix("file:"), columns=["v"])
    assert stored.column("v").to_pylist() == list("abcdef")


@pytest.mark.parametrize("left", [pytest.param(0, marks=pytest.mark.slow), 2])
@pytest.mark.slow
def test_deletes_never_outnumber_the_rows_when_packed(spark: SparkSession, left: int) -> None:
    """DuckDB 1.5.5 fails in a union over such a table: "Information loss on integer cast"."""
    engine = Engine(spark)
    state, e = engine.table.name, engine.event
    upkeep = MaintainedTable(
        engine.lake, engine.table, state, datetime.now(UTC), timedelta(days=90)
    )
    for batch in range(1, 7):
        engine.run(*(e("u", 10, 100 * batch + key, id=key, v=str(batch)) for key in range(10)))
    compact(upkeep)
    spark.sql(f"DELETE FROM {engine.lake.qualified(state)} WHERE id >= {left}")  # as a purge
    compact(upkeep)
    [[location]] = spark.sql(
        f"SELECT file FROM {engine.lake.qualified(state)}.metadata_log_entries"
        " ORDER BY timestamp DESC, latest_sequence_number DESC LIMIT 1"
    ).collect()
    with duckdb.connect() as session:
        for extension in ("avro", "iceberg"):
            session.execute(f"LOAD '{extension_file(extension)}'")
        scan = f"SELECT id, v FROM iceberg_scan('{location.removeprefix('file:')}')"
        rows = session.execute(f"{scan} UNION ALL {scan} ORDER BY ALL").fetchall()
    assert rows == [(key, "6") for key in range(left) for _ in range(2)]
    assert sum(deletes_of(engine)) <= left


def test_an_empty_table_has_nothing_to_pack(spark: SparkSession) -> None:
    engine = Engine(spark)
    for name in (engine.table.name, engine.table.changes):
        compact(
            MaintainedTable(engine.lake, engine.table, name, datetime.now(UTC), timedelta(days=90))
        )
        assert files_of(engine, name) == set()
