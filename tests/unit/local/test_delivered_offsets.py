"""Offsets that each table has reached, by the writer of its changelog."""

from dataclasses import replace

import pytest

from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.local.components.kafka import Broker
from cdclake.local.lake import delivered_offsets
from cdclake.local.lake.delivered_offsets import arrived_offsets
from cdclake.local.process.credentials import Login
from cdclake.plan import Column, Plan, Table
from tests.recorded.firehose import stream_of


def table(name: str, **more: str) -> Table:
    column = Column(source="id", name="id", type="bigint")
    topic = f"x.public.{name}"
    made = Table(
        schema="public", table=name, name=name, topic=topic, key=("id",), columns=(column,)
    )
    return replace(made, **more)  # type: ignore[arg-type]


def test_the_stream_says_it_of_its_tables_and_kafka_of_firehoses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streamed, one, other = table("s"), *(table(n, delivery="firehose") for n in ("a", "b"))
    stream = replace(stream_of(one), name="sales", topic="x.sales", tables=("a", "b"))
    plan = Plan(
        name="x", source_database="d", lake_database="l", tables=(streamed, one, other),
        deliveries=(stream,),
    )  # fmt: skip
    broker = Broker("k", Login("cdclake", "secret"))
    asked: list[tuple[Broker, str, str]] = []

    def group_offsets(kafka: Broker, group: str, topic: str) -> dict[int, int]:
        asked.append((kafka, group, topic))
        return {0: 7}

    monkeypatch.setattr(delivered_offsets, "group_offsets", group_offsets)
    progress = Progress(tables={"s": TableProgress(offsets={0: 3}), "a": TableProgress()})
    assert arrived_offsets(broker, plan, progress) == {"s": {0: 3}, "a": {0: 7}, "b": {0: 7}}
    assert asked == [(broker, "firehose.x.sales", "x.sales")]
    asked.clear()
    arrived_offsets(broker, replace(plan, deliveries=()), progress)
    assert asked == []  # Kafka is not asked for nothing
