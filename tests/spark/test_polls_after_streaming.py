"""Tables that change between replication and polls."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.plan import Column
from tests.local.source_database import running_server
from tests.spark.events import Engine
from tests.spark.polled_table import COLUMNS, PolledTable

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


def test_a_polled_row_is_known_under_the_text_of_replication(spark: SparkSession, dsn: str) -> None:
    """A poll writes six digits of a second, the stream as many as the column has."""
    polled = PolledTable(spark, dsn, create=False)
    key = Column(source="id", name="id", type="timestamptz(3)")
    table = replace(polled.table, columns=(key, *COLUMNS[1:]))
    polled.plan = replace(polled.plan, polled=(table,))
    polled.run(
        f"CREATE TABLE {polled.name} (id timestamptz(3) PRIMARY KEY, v text, amount numeric(6,2),"
        " at timestamptz NOT NULL DEFAULT now())",
        f"INSERT INTO {polled.name} VALUES ('2024-01-01 22:04:05.12Z', 'polled', 1.5)",
    )
    assert polled.poll() == 1
    streamed = replace(table, delivery="stream", polling=None)
    engine = Engine(spark, replace(polled.plan, tables=(streamed,), polled=()))
    [read] = engine.log()
    assert read["id"] == "2024-01-01T22:04:05.120000Z"
    lsn = read["cdc_lsn"] + 100
    for op, expected in (("u", ["streamed"]), ("d", [])):
        lsn += 10
        event = engine.event(op, lsn, lsn, epoch=read["cdc_epoch"])
        event["key"] = {"id": "2024-01-01T22:04:05.120Z"}
        if op == "u":
            event["value"]["after"] = {
                **event["key"], "v": "streamed", "amount": "1.50", "at": "2020-01-01T00:00:00Z",
            }  # fmt: skip
        engine.run(event, epoch=read["cdc_epoch"], apply_now=False)
        assert [row[1] for row in polled.rows()] == expected
        engine.apply()
        rebuild_state(engine.lake, streamed)
        live = engine.lake.read(streamed.name).where("NOT cdc_deleted").collect()
        assert [row["v"] for row in live] == expected
