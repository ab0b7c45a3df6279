"""Refused records: kept with their bytes, once, by one of two streams."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession

from cdclake.errors import Fenced
from cdclake.jobs.stream import quarantine
from tests.spark.events import Engine, plan_of
from tests.spark.test_one_writer import asleep_before_its_commit

pytestmark = pytest.mark.spark


@pytest.fixture
def engine(spark: SparkSession) -> Engine:
    return Engine(spark)


@pytest.fixture
def cut_bounds(spark: SparkSession, engine: Engine) -> Iterator[None]:
    """Bounds of topics have 16 characters, as in lakes of earlier versions."""
    table = engine.lake.qualified("cdclake_quarantine")
    setting = "write.metadata.metrics.column.topic"
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('{setting}')")
    yield
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{setting}' = 'full')")


def two_tables(spark: SparkSession) -> list[Engine]:
    """Engines of two tables whose topics have the first 16 characters in common."""
    engines, shared = [], uuid.uuid4().hex[:7]  # and the 9 of the schema
    for name in (f"{shared}_orders", f"{shared}_items"):
        plan = plan_of()
        table = replace(plan.tables[0], table=name, name=name, topic=f"x.public.{name}")
        engines.append(Engine(spark, replace(plan, tables=(table,))))
    return engines


def test_the_owner_that_wakes_up_after_a_takeover_quarantines_nothing_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused, first = (b'{"id": 1}', b"{rubbish"), engine.next_offset
    asleep_before_its_commit(monkeypatch, lambda: engine.run(refused, offset=first))
    with pytest.raises(Fenced, match="another stream has written to cdclake_quarantine"):
        engine.run(refused, offset=first)
    assert [row["value"] for row in engine.quarantined()] == [b"{rubbish"]


@pytest.mark.slow  # by default the bounds of the next test
@pytest.mark.usefixtures("cut_bounds")
def test_two_tables_with_similar_topics_quarantine_at_the_same_time(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = two_tables(spark)
    refused = (b'{"id": 1}', b"{rubbish")
    asleep_before_its_commit(monkeypatch, lambda: two.run(refused, refused))
    assert one.run(refused).quarantined == 1
    assert [len(each.quarantined()) for each in (one, two)] == [1, 2]


def test_the_bounds_of_the_quarantine_tell_similar_topics_apart(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = two_tables(spark)
    refused, unknown = (b'{"id": 1}', b"{rubbish"), Mock(side_effect=quarantine._unknown)
    monkeypatch.setattr(quarantine, "_unknown", unknown)
    for engine in (one, two):
        assert engine.run(refused).quarantined == 1
    unknown.assert_not_called()
    assert one.run(refused, offset=0).quarantined == 0
    unknown.assert_called_once()


def test_a_topic_that_was_created_again_has_other_records_at_the_same_places(
    engine: Engine,
) -> None:
    """The quarantine may hold a record of the topic before at a refused record's place."""
    first = engine.next_offset
    engine.run((b'{"id": 1}', b"{before"), offset=first, epoch=1)
    assert engine.run((b'{"id": 1}', b"{after"), offset=first, epoch=2).quarantined == 1
    assert engine.run((b'{"id": 1}', b"{after"), offset=first, epoch=2).quarantined == 0
    assert engine.run((None, None), offset=first, epoch=2).quarantined == 0  # a tombstone
    assert {bytes(row["value"]) for row in engine.quarantined()} == {b"{before", b"{after"}


def test_a_refused_record_keeps_its_bytes_and_headers(engine: Engine) -> None:
    first, headers = engine.next_offset, [("trace", b"\x00\xff"), ("trace", None)]
    topic = engine.table.topic
    records = [
        (topic, 0, first, b"{}", b"\xff not a text", headers),
        (topic, 0, first + 1, None, b"", []),
    ]
    engine.run_records(records, {0: (first, first + 2)})
    kept = [(row["key"], row["value"], row["headers"]) for row in engine.quarantined()]
    assert [(key, value) for key, value, _ in kept] == [(b"{}", b"\xff not a text"), (None, b"")]
    assert [tuple(header) for header in kept[0][2]] == headers and not kept[1][2]
