"""Hudi copies: they equal their states, by Spark and by hudi-rs, whatever happened in between."""

from __future__ import annotations

import random

import boto3
import pytest
from pyspark.sql import SparkSession

from cdclake.hudi_copy import HudiType
from cdclake.jobs.publish import hudi_writer
from cdclake.jobs.publish import publish as publishing
from tests.spark.events import plan_of
from tests.spark.hudi_jvm import hudi_jvm, in_hudi_jvm, needs_hudi
from tests.spark.published_table import PublishedTable, filled

__all__ = ["hudi_jvm"]
pytestmark = [pytest.mark.spark, needs_hudi]

TYPES = [pytest.param("cow"), pytest.param("mor", marks=pytest.mark.slow)]


def equal(table: PublishedTable) -> bool:
    return table.rows() == table.rust() == table.expected()


@pytest.mark.parametrize("kind", TYPES)
@in_hudi_jvm
def test_a_copy_follows_its_table(spark: SparkSession, kind: HudiType) -> None:
    table = PublishedTable(spark, kind)
    assert table.publish() == 0, "no row was ever there"
    filled(table)
    assert equal(table)
    assert table.publish() == 0, "nothing has changed"
    e = table.event
    table.engine.run(
        e("u", 20, 20, id=1, v="a2", big="Kenya"), e("d", 20, 21, id=2),
        e("c", 20, 22, id=4, v="new", big="Peru"), e("c", 20, 23, id=5, v="x", big="Peru"),
        e("d", 20, 24, id=5),
    )  # fmt: skip
    assert table.publish() == 4
    assert equal(table) and [row[0] for row in table.rows()] == [1, 3, 4]
    table.engine.run(e("u", 30, 30, id=4, v="later", big="Peru"), apply_now=False)
    assert table.publish() == 0, "what the state has not applied is not published"
    table.engine.apply()
    table.engine.run(e("c", 31, 31, id=2, v="again", big="Peru"))
    assert table.publish() == 2
    assert equal(table)
    table.engine.run(e("t", 40, 40, id=None))
    assert table.publish() == 0
    assert table.rows() == table.rust() == []
    operations = ["BULK_INSERT", "UPSERT", "UPSERT", "INSERT_OVERWRITE_TABLE"]
    assert [*table.commits().values()] == operations


@pytest.mark.slow
@in_hudi_jvm
def test_a_late_value_that_was_not_sent_reaches_the_copy(spark: SparkSession) -> None:
    """The row keeps its position, so the writer must take a row of the same position."""
    table = filled(PublishedTable(spark, partition_by="v"))
    e = table.event
    table.engine.run(e("u", 30, 30, v="a", big=...))
    table.publish()
    table.engine.run(e("u", 20, 20, v="old", big="late"))
    assert table.publish() == 1
    assert table.rows()[0] == (1, "a", "late")
    assert equal(table)


@pytest.mark.slow
@in_hudi_jvm
def test_soft_deletes_keep_the_key_alone(spark: SparkSession) -> None:
    table = filled(PublishedTable(spark, plan=plan_of(deletes="soft")))
    table.engine.run(table.event("d", 20, 20, id=1))
    assert table.publish() == 1
    columns = ("id", "v", "big", "cdc_op", "cdc_deleted")
    assert table.rows(columns)[0] == (1, None, None, "d", True)
    assert table.rows(columns) == table.rust(columns)
    assert len(table.rows()) == 3, "the row has left the partition of its last value"


@pytest.mark.parametrize("index", ["BLOOM", pytest.param("SIMPLE", marks=pytest.mark.slow)])
@in_hudi_jvm
def test_hazard_a_moved_row_is_two_rows_by_an_index_of_partitions(
    spark: SparkSession, index: str
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hudi_writer, "_INDEX", {"hoodie.index.type": index})
        table = filled(PublishedTable(spark))
        table.engine.run(table.event("u", 20, 20, id=1, v="moved", big="Kenya"))
        table.publish()
    moved = [row for row in table.rows() if row[0] == 1]
    assert moved == [(1, "a", "Peru"), (1, "moved", "Kenya")]
    assert [row for row in table.rust() if row[0] == 1] == moved


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
@in_hudi_jvm
def test_a_moved_row_is_one_row_by_the_global_index(spark: SparkSession, kind: HudiType) -> None:
    table = filled(PublishedTable(spark, kind))
    table.engine.run(table.event("u", 20, 20, id=1, v="moved", big="Kenya"))
    table.publish()
    assert [row for row in table.rows() if row[0] == 1] == [(1, "moved", "Kenya")]
    assert equal(table)
    table.engine.run(table.event("d", 30, 30, id=1))
    table.publish()
    assert equal(table)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
@in_hudi_jvm
def test_earlier_rows_and_changed_rows_can_be_queried(spark: SparkSession, kind: HudiType) -> None:
    table = filled(PublishedTable(spark, kind))
    before = table.rows()
    table.engine.run(
        table.event("u", 20, 20, id=1, v="a2", big="Peru"), table.event("d", 20, 21, id=2)
    )
    table.publish()
    first, _ = table.commits()
    assert table.rows(**{"as.of.instant": first}) == table.rust(as_of=first) == before
    incremental = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": first,
    }
    assert table.rows(**incremental) == table.rust(since=first) == [(1, "a2", "Peru")]


@pytest.mark.parametrize("kind", TYPES)
@in_hudi_jvm
def test_killed_before_the_commit_the_publication_is_done_again(
    spark: SparkSession, kind: HudiType
) -> None:
    table = filled(PublishedTable(spark, kind))
    before = table.rows()
    e = table.event
    table.engine.run(e("u", 20, 20, id=1, v="a2", big="Kenya"), e("d", 20, 21, id=2))
    table.publish()
    table.forget_last_commit()
    assert table.rows() == table.rust() == before, "readers see no half of it"
    assert table.publish() == 2
    assert equal(table)
    assert [*table.commits().values()] == ["BULK_INSERT", "UPSERT"]


@in_hudi_jvm
def test_killed_before_the_catalog_the_next_run_completes_it(spark: SparkSession) -> None:
    table = PublishedTable(spark, "mor")

    def killed(point: str) -> None:
        assert point == "after_hudi_commit"
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(publishing, "reach", killed)
        filled(table)
    glue, place = boto3.client("glue"), {"DatabaseName": "cdc"}
    names = {each["Name"] for each in glue.get_tables(**place)["TableList"]}
    assert names.isdisjoint(table.copy.entries)
    assert table.publish() == 0, "the commit was complete"
    for entry in table.copy.entries:
        found = glue.get_partitions(**place, TableName=entry)["Partitions"]
        values = {each["Values"][0] for each in found}
        assert values == {"Peru", "A/B, 50 %", "__HIVE_DEFAULT_PARTITION__"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("seed", range(4))
@in_hudi_jvm
def test_random_changes_end_as_the_state(spark: SparkSession, kind: HudiType, seed: int) -> None:
    chance, lsn = random.Random(seed), 1000
    table = filled(PublishedTable(spark, kind))
    for _ in range(8):  # more than a merge-on-read copy has between two compactions
        for _ in range(chance.randrange(4)):
            lsn += 1
            key, exists = chance.randrange(1, 6), table.engine.state()
            if key in exists and chance.random() < 0.4:
                table.engine.run(table.event("d", lsn, lsn, id=key))
                continue
            country = chance.choice([None, "Peru", "Kenya", "Fiji"])
            op = "u" if key in exists else "c"
            table.engine.run(table.event(op, lsn, lsn, id=key, v=f"v{lsn}", big=country))
        table.publish()
        if chance.random() < 0.2:
            table.forget_last_commit()
            table.publish()
        assert equal(table), f"seed {seed}"
