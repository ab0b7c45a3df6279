"""How far tables have come, by who writes their logs."""

from dataclasses import replace

import pytest

from cdclake.jobs.control.progress import Progress, TableProgress
from cdclake.local.lake import delivered_offsets
from cdclake.local.lake.delivered_offsets import arrived_offsets
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
    asked: list[tuple[str, str, str]] = []

    def group_offsets(kafka: str, group: str, topic: str) -> dict[int, int]:
        asked.append((kafka, group, topic))
        return {0: 7}

    monkeypatch.setattr(delivered_offsets, "group_offsets", group_offsets)
    progress = Progress(tables={"s": TableProgress(offsets={0: 3}), "a": TableProgress()})
    assert arrived_offsets("k", plan, progress) == {"s": {0: 3}, "a": {0: 7}, "b": {0: 7}}
    assert asked == [("k", "firehose.x.sales", "x.sales")]
    asked.clear()
    arrived_offsets("k", replace(plan, deliveries=()), progress)
    assert asked == []  # Kafka is not asked for nothing
