"""Hudi copies: they equal their states, by Spark and by hudi-rs, whatever happened in between."""

from __future__ import annotations

import random
from dataclasses import replace

import boto3
import pytest
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.errors import TableError
from cdclake.hudi_copy import HudiType
from cdclake.iceberg.schemas import all_schemas
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.iceberg.commit_metadata import state_stamp_json
from cdclake.jobs.publish import hudi_writer
from cdclake.jobs.publish import publish as publishing
from cdclake.plan import Column
from tests.spark.events import plan_of
from tests.spark.firehose_log import FirehoseLog
from tests.spark.hudi_jvm import hudi_jvm, in_hudi_jvm, needs_hudi
from tests.spark.published_table import COLUMNS, PublishedTable, filled
from tests.spark.test_firehose_log import rows

__all__ = ["hudi_jvm"]
pytestmark = [pytest.mark.spark, needs_hudi]

TYPES = ["cow", "mor"]


def equal(table: PublishedTable) -> bool:
    return table.rows() == table.rust() == table.expected()


@pytest.mark.slow
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
def test_another_table_replaces_the_rows_of_a_copy(spark: SparkSession) -> None:
    first = filled(PublishedTable(spark))
    second = PublishedTable(spark, name=first.copy.name)
    second.engine.run(second.event("c", 10, 10, id=7, v="other", big="Peru"))
    assert second.publish() == 1
    assert equal(second) and [row[0] for row in second.rows()] == [7]
    assert [*second.commits().values()] == ["BULK_INSERT", "INSERT_OVERWRITE_TABLE"]
    assert second.publish() == 0


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


@pytest.mark.slow
@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE"])
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
    # Of a merge-on-read copy's two entries `_ro` has both until the next compaction.
    compacted = table.rows(**{"hoodie.datasource.query.type": "read_optimized"})
    assert len([row for row in compacted if row[0] == 1]) == (2 if kind == "mor" else 1)
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
@in_hudi_jvm
def test_killed_before_the_commit_the_publication_is_done_again(
    spark: SparkSession, kind: HudiType
) -> None:
    table = filled(PublishedTable(spark, kind))
    before = table.rows()
    e = table.event
    table.engine.run(e("u", 20, 20, id=1, v="a2", big="Kenya"), e("d", 20, 21, id=2))
    table.publish_and_fail()
    assert table.rows() == table.rust() == before, "readers see no half of it"
    assert table.publish() == 2
    assert equal(table)
    assert [*table.commits().values()] == ["BULK_INSERT", "UPSERT"]


@pytest.mark.slow
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
        changes = chance.randrange(4)
        for _ in range(changes):
            lsn += 1
            key, exists = chance.randrange(1, 6), table.engine.state()
            if key in exists and chance.random() < 0.4:
                table.engine.run(table.event("d", lsn, lsn, id=key))
                continue
            country = chance.choice([None, "Peru", "Kenya", "Fiji"])
            op = "u" if key in exists else "c"
            table.engine.run(table.event(op, lsn, lsn, id=key, v=f"v{lsn}", big=country))
        if changes and chance.random() < 0.3:
            table.publish_and_fail()
        table.publish()
        assert equal(table), f"seed {seed}"


KEYS = ["", ",b:2", "b:2", "__empty__", "__null__", "é"]


@pytest.mark.slow
@in_hudi_jvm
def test_keys_of_text_stay_apart_and_values_are_kept(spark: SparkSession) -> None:
    """Hudi refuses an empty key, and joins columns by `,` and `:` without escaping them."""
    kinds = {
        "a": "text", "b": "text", "n": "numeric(30,4)", "d": "date", "t": "timestamp",
        "z": "timestamptz", "f": "double precision", "raw": "bytea", "is_on": "boolean",
    }  # fmt: skip
    columns = tuple(Column(source=name, name=name, type=kind) for name, kind in kinds.items())
    plan = plan_of(columns=columns)
    plan = replace(plan, tables=(replace(plan.tables[0], key=("a", "b")),))
    table = PublishedTable(spark, partition_by="d", plan=plan)
    state = table.engine.lake.qualified(table.engine.table.name)
    values = "12345678901234567890.1234, DATE'0044-03-15', TIMESTAMP_NTZ'1582-10-04 00:00:00.1',"
    values += " TIMESTAMP'0005-01-01 00:00:00.000001', double('NaN'), X'00FF', true"
    rows = [f"('{a}', '{b}', {values})" for a in KEYS for b in KEYS]
    held = ", ".join(kinds)
    write_state(table, f"VALUES {', '.join(rows)} AS t ({held})")
    assert table.publish() == len(KEYS) ** 2
    wanted = f"SELECT {held.replace(' t,', ' CAST(t AS timestamp),')} FROM {state}"
    expected = sorted((tuple(row) for row in spark.sql(wanted).collect()), key=repr)
    assert repr(table.rows([*kinds])) == repr(expected)
    by_rust = {
        (a, b, n, d, bytes(raw)) for a, b, n, d, raw in table.rust(["a", "b", "n", "d", "raw"])
    }
    assert by_rust == {(row[0], row[1], row[2], row[3], bytes(row[7])) for row in expected}


def write_state(table: PublishedTable, live: str) -> None:
    """Have the state hold these rows, as an apply does: in a commit with a stamp."""
    lake, name = table.engine.lake, table.engine.table.name
    ours = f"'c' AS {naming.OP}, '1' AS {naming.POSITION}, false AS {naming.DELETED}"
    rows = lake.completed(lake.spark.sql(f"SELECT *, {ours} FROM ({live})"), name)
    stamp = state_stamp_json(AppliedThrough(ingested=1))
    lake.run_stamped(stamp, lambda: rows.writeTo(lake.qualified(name)).append())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cow", "mor"])
@in_hudi_jvm
def test_a_new_column_is_in_every_row(spark: SparkSession, kind: HudiType) -> None:
    table = filled(PublishedTable(spark, kind))
    plan = table.engine.plan
    [old] = plan.tables
    added = replace(old, columns=(*old.columns, Column(source="x", name="x", type="integer")))
    table.engine.declare(replace(plan, tables=(added,)))
    assert table.publish() == 0, "the state lacks the column until the stream starts"
    for schema in all_schemas(table.engine.plan):
        table.engine.lake.create(schema)
    assert table.publish() == 3
    columns = (*COLUMNS, "x")
    expected = [(*row, None) for row in table.expected()]
    assert table.rows(columns) == table.rust(columns) == expected
    table.engine.declare(plan)
    assert table.publish() == 3
    assert equal(table)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
@in_hudi_jvm
def test_a_copy_of_before_a_widening_is_written_again(spark: SparkSession, kind: HudiType) -> None:
    """The publication follows the plan before the stream does, which may run hours later."""
    columns = [
        Column(source=name, name=name, type=type)
        for name, type in (("id", "bigint"), ("v", "text"), ("big", "numeric(10,2)"))
    ]
    table = PublishedTable(spark, kind, partition_by=None, plan=plan_of(columns=tuple(columns)))
    table.engine.run(table.event("c", 10, 10, id=1, v="a", big="1.00"))
    columns[2] = replace(columns[2], type="numeric(13,2)")
    [old] = table.engine.plan.tables
    widened = replace(table.engine.plan, tables=(replace(old, columns=tuple(columns)),))
    table.engine.declare(widened)
    assert (table.publish(), table.publish()) == (1, 0)
    for schema in all_schemas(widened):
        table.engine.lake.create(schema)
    table.engine.run(table.event("c", 20, 20, id=2, v="b", big="12345678901.23"))
    table.publish()
    assert equal(table)
    assert [*table.commits().values()][-1] == "INSERT_OVERWRITE_TABLE"


@pytest.mark.slow
@in_hudi_jvm
def test_another_layout_needs_another_name(spark: SparkSession) -> None:
    table = filled(PublishedTable(spark))
    table.partition_by = "v"
    with pytest.raises(TableError, match=r"keyed by id, partitioned by big; .* partitioned by v"):
        table.publish()
    table.partition_by = "big"
    assert table.publish() == 0 and equal(table)


@pytest.mark.slow
@in_hudi_jvm
def test_rows_that_hudi_cannot_write_stop_the_copy(spark: SparkSession) -> None:
    """Of a bulk insert Hudi logs such rows and commits the others."""
    mode = "spark.sql.parquet.datetimeRebaseModeInWrite"
    columns = (
        Column(source="id", name="id", type="bigint"),
        Column(source="d", name="d", type="date"),
    )
    table = PublishedTable(spark, partition_by=None, plan=plan_of(columns=columns))
    write_state(table, "VALUES (1L, DATE'0001-01-01'), (2L, NULL) AS t (id, d)")
    spark.conf.set(mode, "EXCEPTION")
    try:
        with pytest.raises(TableError, match="Hudi could not write all rows"):
            table.publish()
    finally:
        spark.conf.set(mode, "CORRECTED")
    assert table.publish() == 2, "the next run writes the copy as a whole"
    assert [row[0] for row in table.rust(["id"])] == [1, 2]


@pytest.mark.slow
@in_hudi_jvm
def test_what_firehose_commits_late_and_what_a_sweep_removes_is_published(
    spark: SparkSession,
) -> None:
    """Commits are counted, since rows of a later one may have been ingested earlier."""
    log = FirehoseLog(spark, plan_of())
    table = PublishedTable(spark, partition_by=None, plan=log.plan)
    table.engine, e = log.engine, log.engine.event
    first, second, late = rows(
        log, e("c", 10, 10, v="a"), e("c", 10, 11, id=2, v="b"), e("u", 20, 20, v="c"),
    )  # fmt: skip
    late["cdc_ingested_at"] -= 3_600_000_000
    log.commit([first, second])
    log.apply(epoch=1)
    assert table.publish() == 2
    log.commit([late])
    assert table.publish() == 0, "the state has not applied it"
    log.apply(epoch=1)
    assert table.publish() == 2, "those ingested since the late one are written again"
    assert [row[:2] for row in table.rows()] == [(1, "c"), (2, "b")]
    [read] = rows(log, e("r", 50, 50, v="new", epoch=2), first=3)
    log.commit([read])
    log.apply(epoch=2)
    table.publish()
    assert [row[:2] for row in table.rows()] == [(1, "new")]
    assert equal(table)
