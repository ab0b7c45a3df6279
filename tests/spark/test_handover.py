"""A stream ends between two batches when another deployment is wanted, and never in one."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from cdclake import naming
from cdclake.jobs.stream import handover
from cdclake.jobs.stream.handover import Handover
from tests.spark.events import MemoryStore

pytestmark = pytest.mark.spark


class Batches:
    """A stream of one row a batch whose batches take a while, and what became of them."""

    def __init__(self, spark: Any, folder: Any, store: MemoryStore, deployment: str | None) -> None:
        self.begun: list[int] = []
        self.ended: list[int] = []
        self.looks: list[int] = []
        self._handover = Handover(store, deployment)  # type: ignore[arg-type]
        rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        self.query = (
            rate.writeStream.foreachBatch(self._handover.guarded(self._take))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .start()
        )

    def _take(self, records: DataFrame, number: int) -> None:
        self.begun.append(number)
        records.count()
        time.sleep(0.5)
        self.ended.append(number)

    def await_batch(self) -> None:
        """Until a batch has begun that has not ended."""
        deadline = time.monotonic() + 60
        while len(self.begun) == len(self.ended):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def await_end(self) -> None:
        """As the job does."""
        self._handover.await_end(self.query, lambda: self.looks.append(1))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    monkeypatch.setattr(handover, "CHECK_INTERVAL_S", 0.2)
    return MemoryStore()


def wants(store: MemoryStore, deployment: str | None) -> None:
    store.write(naming.STREAM_ORDER, {"deployment": deployment})


def test_a_batch_that_runs_is_ended_and_no_other_begins(spark, tmp_path, store):
    wants(store, "old")
    batches = Batches(spark, tmp_path, store, "old")
    batches.await_batch()
    wants(store, "new")
    batches.await_end()
    assert not batches.query.isActive
    assert batches.begun == batches.ended and batches.begun and batches.looks
    again = Batches(spark, tmp_path, store, "new")  # goes on where the other one ended
    again.await_batch()
    wants(store, None)  # switched off
    again.await_end()
    assert again.begun[0] in (batches.ended[-1], batches.ended[-1] + 1)
    assert again.begun == again.ended


def test_a_stream_that_nobody_orders_ends_by_itself_only(spark, tmp_path, store):
    wants(store, "another")
    batches = Batches(spark, tmp_path, store, None)
    batches.await_batch()
    batches.query.stop()
    batches.await_end()
    assert batches.begun and not batches.looks


def test_an_error_of_a_batch_is_still_an_error(spark, tmp_path, store):
    batches = Batches(spark, tmp_path, store, "old")
    batches.begun = None  # type: ignore[assignment]
    with pytest.raises(StreamingQueryException, match="NoneType"):
        batches.await_end()
