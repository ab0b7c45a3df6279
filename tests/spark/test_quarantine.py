"""Refused records: kept with their bytes, once, by one of two streams."""

import pytest
from pyspark.sql import SparkSession

from cdclake.errors import Fenced
from tests.spark.events import Engine
from tests.spark.test_one_writer import asleep_before_its_commit

pytestmark = pytest.mark.spark


@pytest.fixture
def engine(spark: SparkSession) -> Engine:
    return Engine(spark)


def test_the_owner_that_wakes_up_after_a_takeover_quarantines_nothing_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused, first = (b'{"id": 1}', b"{rubbish"), engine.next_offset
    asleep_before_its_commit(monkeypatch, lambda: engine.run(refused, offset=first))
    with pytest.raises(Fenced, match="another stream has written to cdclake_quarantine"):
        engine.run(refused, offset=first)
    assert [row["value"] for row in engine.quarantined()] == [b"{rubbish"]


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
