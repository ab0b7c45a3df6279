"""The commits by which the state changes: what they hold, and where another way is taken."""

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.jobs.apply.rebuilt_state import ingested_through
from cdclake.jobs.apply.state_job import run_state_job
from cdclake.jobs.apply.state_table import apply_changes, apply_request
from cdclake.jobs.apply.state_update import StateUpdate
from cdclake.jobs.iceberg.delta_handle import DeltaHandle
from tests.spark.events import Engine, plan_of

pytestmark = pytest.mark.spark


def commits(engine: Engine) -> list[dict[str, str]]:
    """The summaries of the state's snapshots, oldest first."""
    snapshots = f"{engine.lake.qualified(engine.table.name)}.snapshots"
    rows = engine.spark.sql(f"SELECT * FROM {snapshots} ORDER BY committed_at").collect()
    return [row["summary"] for row in rows]


def test_a_batch_is_one_stamped_commit_of_rows_and_of_the_places_they_take(
    spark: SparkSession,
) -> None:
    engine = Engine(spark)
    e = engine.event
    engine.run(e("c", 10, 10, v="a"), e("c", 10, 11, id=2, v="b", big="B"), e("c", 10, 12, id=3))
    engine.run(
        e("u", 20, 20, v="aa"), e("u", 20, 21, id=2, v="bb", big=...), e("c", 20, 22, id=4, v="d"),
        e("d", 20, 23, id=5),
    )  # fmt: skip
    first, second = commits(engine)
    assert first["added-records"] == "3" and "added-delete-files" not in first
    assert (second["added-records"], second["added-position-deletes"]) == ("4", "2")
    assert "cdclake.stamp" in first and "cdclake.stamp" in second
    assert engine.state() == {1: ("aa", None), 2: ("bb", "B"), 3: (None, None), 4: ("d", None)}


def test_changes_that_alter_nothing_leave_the_rows_where_they_are(spark: SparkSession) -> None:
    engine = Engine(spark)
    e = engine.event
    engine.run(e("c", 10, 10, v="a"), e("u", 30, 30, v="b"))
    engine.run(e("u", 20, 20, v="late"))
    *_, last = commits(engine)
    assert "added-records" not in last and "added-position-deletes" not in last
    assert engine.state() == {1: ("b", None)}


@pytest.mark.parametrize(
    ("table", "version"), [({"partition_by": ("bucket(2, id)",)}, 2), ({}, 3)], ids=["parts", "v3"]
)
@pytest.mark.slow
def test_partitions_and_other_formats_have_the_same_rows(
    spark: SparkSession, table: dict[str, Any], version: int
) -> None:
    engine = Engine(spark, replace(plan_of(**table), format_version=version))
    e = engine.event
    engine.run(e("c", 10, 10, v="a", big="A"), e("c", 10, 11, id=2, v="b"))
    engine.run(e("u", 20, 20, v="aa", big=...), e("d", 20, 21, id=2), e("u", 15, 15, id=3, v="c"))
    assert engine.state() == {1: ("aa", "A"), 3: ("c", None)}
    assert all("cdclake.stamp" in commit for commit in commits(engine))


def test_keys_beyond_all_that_are_stored_have_no_file_read(spark: SparkSession) -> None:
    engine = Engine(spark)
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="a"), e("c", 10, 11, id=2, v="b"))
    engine.run(e("c", 20, 20, id=3, v="c"), e("c", 20, 21, id=4, v="d"))
    assert engine.state() == {1: ("a", None), 2: ("b", None), 3: ("c", None), 4: ("d", None)}
    *_, last = commits(engine)
    assert last["added-records"] == "2" and "added-delete-files" not in last


def test_creations_of_one_key_in_a_batch_make_one_row(spark: SparkSession) -> None:
    """A snapshot reads a row that was created while it ran; its event may come first, or last."""
    engine = Engine(spark)
    e = engine.event
    engine.run(
        e("r", 10, 10, v="read"), e("c", 10, 11, v="made"),
        e("c", 10, 12, id=2, v="made"), e("r", 10, 13, id=2, v="read"), e("c", 10, 14, id=3, v="c"),
    )  # fmt: skip
    assert engine.state() == {1: ("made", None), 2: ("made", None), 3: ("c", None)}
    assert commits(engine)[0]["added-records"] == "3"


def test_a_failed_commit_is_written_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys are also found in files that no commit has: their indexes do no harm."""
    engine = Engine(spark)
    e = engine.event
    engine.run(e("c", 10, 10, v="a"))

    def fails(*_: Any, **__: Any) -> None:
        raise OSError("the store is full")

    with monkeypatch.context() as patched:
        patched.setattr(DeltaHandle, "commit_delta", fails)
        with pytest.raises(OSError, match="full"):
            engine.run(e("u", 20, 20, v="b"))
    assert len(commits(engine)) == 1
    assert engine.state() == {1: ("a", None)}
    engine.run(e("u", 30, 30, v="c"))
    assert engine.state() == {1: ("c", None)}


def test_a_dead_row_is_not_taken_for_the_stored_one(spark: SparkSession) -> None:
    """The newest file with the key is gone with its tombstone; an older one has a deleted row."""
    engine = Engine(spark)
    e = engine.event
    engine.run(e("c", 10, 10, v="a", big="A"), e("c", 10, 11, id=2, v="b"))
    engine.run(e("d", 20, 20))
    spark.sql(f"DELETE FROM lake.cdc.{engine.table.name} WHERE {naming.DELETED}")
    engine.run(e("u", 30, 30, v="c", big=...))
    assert engine.state() == {1: ("c", None), 2: ("b", None)}
    [row] = engine.lake.read(engine.table.name).where("id = 1").collect()
    assert row[naming.TOAST_MISSING] == ["big"]


def test_the_newest_file_with_a_key_has_its_row(spark: SparkSession) -> None:
    engine = Engine(spark)
    e = engine.event
    engine.run(e("c", 10, 10, v="a", big="A"))
    engine.run(e("u", 20, 20, v="b", big="B"))
    engine.run(e("u", 30, 30, v="c", big=...))
    assert engine.state() == {1: ("c", "B")}


def test_a_row_that_is_inserted_again_is_the_stored_one(spark: SparkSession) -> None:
    """Over its tombstone, and after the tombstone was purged; older files have the key as well."""
    engine = Engine(spark)
    e = engine.event
    engine.run(*(e("c", 10, 10 + id, id=id, v="a", big="A") for id in (1, 2)))
    engine.run(*(e("d", 20, 20 + id, id=id) for id in (1, 2)))
    engine.run(e("c", 30, 30, id=1, v="b", big="B"))
    spark.sql(f"DELETE FROM lake.cdc.{engine.table.name} WHERE {naming.DELETED}")
    engine.run(e("c", 40, 40, id=2, v="c", big="C"))
    engine.run(*(e("u", 50, 50 + id, id=id, v="d", big=...) for id in (1, 2)))
    assert engine.state() == {1: ("d", "B"), 2: ("d", "C")}
    assert engine.lake.read(engine.table.name).count() == 2


@pytest.mark.slow
def test_rows_and_tombstones_move_between_partitions(spark: SparkSession) -> None:
    engine = Engine(spark, plan_of(partition_by=("v",)))
    e = engine.event
    engine.run(e("c", 10, 10, v="a"), e("c", 10, 11, id=2, v="b"), e("c", 10, 12, id=3, v="b"))
    engine.run(e("u", 20, 20, v="c"), e("u", 20, 21, id=2, v="c"), e("d", 20, 22, id=3))
    assert engine.state() == {1: ("c", None), 2: ("c", None)}
    assert engine.lake.read(engine.table.name).count() == 3
    engine.run(e("c", 30, 30, id=3, v="a"))
    assert engine.state()[3] == ("a", None)
    assert engine.lake.read(engine.table.name).count() == 3


@pytest.mark.slow
def test_files_are_planned_again_after_a_commit_between(spark: SparkSession) -> None:
    """A compaction between the look-up and the commit of new keys does not conflict with it."""
    engine = Engine(spark)
    e = engine.event
    for number in (1, 2):
        engine.run(e("c", 10, 10 + number, id=number, v="a"))
    update = StateUpdate(engine.lake, engine.table)
    engine.run(e("c", 20, 20, id=3, v="a"), apply_now=False)
    through = ingested_through(engine.lake, engine.table)
    request = update.request(through)
    assert request is not None
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => 'cdc.{engine.table.name}',"
        " options => map('rewrite-all', 'true'))"
    )
    written = run_state_job(spark, [request])[engine.table.name]
    assert update.commit(request, written) == 1
    engine.run(e("u", 30, 30, id=1, v="b"), apply_now=False)
    assert apply_changes(update, through=ingested_through(engine.lake, engine.table)) == 1
    assert engine.state() == {1: ("b", None), 2: ("a", None), 3: ("a", None)}


def test_a_commit_is_validated_from_the_files_that_were_searched(spark: SparkSession) -> None:
    """The handle is loaded again between the look-up and the commit, after a compaction."""
    engine = Engine(spark)
    e = engine.event
    for number in (1, 2):
        engine.run(e("c", 10, 10 + number, id=number, v="a"))
    update = StateUpdate(engine.lake, engine.table)
    engine.run(e("u", 20, 20, id=1, v="b"), apply_now=False)
    through = ingested_through(engine.lake, engine.table)
    request = update.request(through)
    assert request is not None
    written = run_state_job(spark, [request])[engine.table.name]
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => 'cdc.{engine.table.name}',"
        " options => map('rewrite-all', 'true'))"
    )
    update.forget()
    assert update.applied().ingested < through  # loads the table
    assert apply_request(update, request, through, written) == 1
    rows = spark.table(f"lake.cdc.{engine.table.name}").collect()
    assert sorted((row["id"], row["v"]) for row in rows) == [(1, "b"), (2, "a")]
