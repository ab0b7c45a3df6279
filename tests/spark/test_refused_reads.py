"""A resync deletes no row whose event was refused since its request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.debezium.position import reached
from cdclake.jobs.operations import replay
from cdclake.jobs.operations.replay import replay_quarantine
from tests.spark.test_repairs import store_null_instead
from tests.spark.test_settled_refusals import Resync

pytestmark = pytest.mark.spark
RUBBISH = (b'{"id":2}', b"{rubbish")


@pytest.fixture(autouse=True)
def young(monkeypatch: pytest.MonkeyPatch) -> None:
    """The events here are of 2023."""
    monkeypatch.setattr(replay, "replay_age", lambda *_: None)


class Read:
    """A resync of rows 1 to 4: row 1 is read, row 4 is gone, and row 5 is created meanwhile."""

    def __init__(self, spark: SparkSession, **table: Any) -> None:
        self.resync = Resync(spark, **table)
        self.engine = self.resync.engine
        self.engine.place = self.resync.place
        self.engine.run(*(self.event("c", 12 + id, id) for id in (2, 3, 4)))
        self.asked = {"position": str(reached(1, 25)), "offsets": {0: 5}}
        self.engine.run(self.resync.row(), self.event("c", 31, 5))

    def event(self, op: str, lsn: int, id: int, v: str = "1.00", **how: Any) -> dict[str, Any]:
        return self.engine.event(op, lsn, lsn, id=id, v=v, big="new", **how)

    def answer(self, **request: Any) -> dict[str, Any]:
        """The stream's answer: the connector has read rows 1 and 2."""
        return self.resync.answer(2, **{**self.asked, **request})

    def live(self) -> list[int]:
        return sorted(self.engine.state())


def raw(event: dict[str, Any], key: bytes = b'{"id":3}', **value: Any) -> tuple[bytes, bytes]:
    """The record of an event with another key, and other fields in its value."""
    return key, json.dumps({**event["value"], **value}, separators=(",", ":")).encode()


def test_row_whose_read_was_refused_stays(spark: SparkSession) -> None:
    """Row 5, which was created meanwhile, counts as read instead of it."""
    read = Read(spark)
    of_another_type = {"id": 3, "v": {"a": 2}, "big": "new"}
    read.engine.run(
        read.event("r", 30, 2, v="NaN", incremental=True),
        raw(read.event("u", 32, 3), after=of_another_type),  # the key of the record is readable
    )
    assert read.answer()["ghosts"] == 1
    assert read.live() == [1, 2, 3, 5]


@pytest.mark.slow
def test_replay_restores_no_deleted_row_and_deletes_no_row_that_was_refused(
    spark: SparkSession,
) -> None:
    """Older events of both rows are accepted later, and the newest one of row 3 still is not."""
    read = Read(spark)
    older = [read.event("u", 20, id, v="NaN") for id in (3, 4)]
    newest = raw(read.event("u", 32, 3), after={"id": 3, "v": {"a": 2}, "big": "new"})
    read.engine.run(*older, newest, offset=7)
    assert read.answer()["ghosts"] == 2  # rows 2 and 4
    store_null_instead(read.engine)
    done = replay_quarantine(read.engine.stream(), epoch=1)
    assert (done.replayed, len(done.refused)) == (3, 1)
    assert read.live() == [1, 3, 5]


@pytest.mark.slow
def test_row_whose_delete_was_refused_goes(spark: SparkSession) -> None:
    read = Read(spark, replica_identity="full")
    before = {"id": 3, "v": {"a": 2}, "big": "new"}
    refused = read.event("u", 32, 3, v="NaN", before={"id": 3, "v": "1.00", "big": "new"})
    deleted = raw(read.event("d", 33, 3), before=before)
    read.engine.run(read.event("r", 30, 2, incremental=True), refused, deleted)
    assert (read.answer()["ghosts"], read.live()) == (2, [1, 2, 5])


@pytest.mark.parametrize(
    ("record", "request_of", "is_refused"),
    [
        ((b'{"id":2', None), {}, True),
        pytest.param(RUBBISH, {}, True, marks=pytest.mark.slow),
        pytest.param(RUBBISH, {"offsets": {0: 8}}, False, id="before it"),
        pytest.param(RUBBISH, {"offsets": {}}, False, id="unknown offsets", marks=pytest.mark.slow),
    ],
)
def test_refused_event_of_an_unknown_row_fails_the_resync(
    spark: SparkSession,
    record: tuple[bytes, bytes | None],
    request_of: dict[str, Any],
    is_refused: bool,
) -> None:
    read = Read(spark)
    key, value = record
    unknown = (key, value or raw(read.event("u", 32, 2))[1])
    read.engine.run(unknown, read.event("c", 33, 6))
    answer = read.answer(**request_of)
    assert ("1 events since the request" in answer.get("error", "")) == is_refused
    assert read.live() == ([1, 2, 3, 4, 5, 6] if is_refused else [1, 5, 6])
