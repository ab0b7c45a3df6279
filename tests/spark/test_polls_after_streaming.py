"""Polls of a table whose changes came from replication before."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.local.source_database import running_server
from tests.spark.events import Engine
from tests.spark.polled_table import PolledTable

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with running_server() as server:
        yield f"{server}/postgres"


def snapshot_record(engine: Engine, partition: int, key: int) -> tuple[Any, ...]:
    """A row of the initial snapshot, at offset 7 of a partition."""
    event = engine.event("r", None, 100, id=key)
    event["value"]["after"] = {
        "id": key, "v": "same", "amount": "1.50", "at": "2020-01-01T00:00:00Z",
    }  # fmt: skip
    key_bytes = json.dumps(event["key"]).encode()
    return engine.table.topic, partition, 7, key_bytes, json.dumps(event["value"]).encode(), None


def test_a_sweep_keeps_a_row_at_the_position_of_a_deleted_one(
    spark: SparkSession, dsn: str
) -> None:
    polled = PolledTable(spark, dsn)
    streamed = replace(polled.table, delivery="stream", polling=None)
    engine = Engine(spark, replace(polled.plan, tables=(streamed,), polled=()))
    records = [snapshot_record(engine, key - 1, key) for key in (1, 2)]
    engine.run_records(records, {0: (7, 8), 1: (7, 8)})
    assert len({row["cdc_position"] for row in engine.log()}) == 1
    polled.run(f"INSERT INTO {polled.name} VALUES (2, 'same', 1.5, '2020-01-01 00:00Z')")
    assert polled.poll() == 1
    assert polled.events()[2:] == [(1, "d", None)]
    assert polled.rows() == polled.source_rows()
