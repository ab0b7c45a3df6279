"""How far Firehose's tables have come, by the places of the events in their logs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import duckdb
import pytest

from cdclake.debezium.position import snapshot_start
from cdclake.firehose.arrival import DELIVERY_S
from cdclake.firehose.stream import DeliveryStream
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.control.topic_state import SnapshotTopic
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.verify.firehose_offsets import delivered_offsets
from cdclake.plan import Plan, Table
from tests.unit.verify.lakes import create, event, make_table

A, B = (make_table(name=n, table=n, topic="p.trade", delivery="firehose") for n in ("a", "b"))
STREAMED = make_table(name="c", table="c", topic="p.public.c")


class Logs:
    """A reader of logs that are in memory."""

    def __init__(self, **logs: list[dict[str, Any]]) -> None:
        self.logs = logs

    @contextmanager
    def open(self, tables: list[Table]) -> Iterator[duckdb.DuckDBPyConnection]:
        with duckdb.connect(":memory:") as session:
            for table in tables:
                create(session, table, self.logs.get(table.name, []))
            yield session


def plan() -> Plan:
    stream = DeliveryStream(
        name="trade", topic="p.trade", tables=("a", "b"), routed=True, buffer_seconds=1,
        buffer_mib=1, function_seconds=1, function_mib=1, function_retries=0, retry_seconds=0,
        backup="failed", error_prefix="firehose", mib_per_second=1,
    )  # fmt: skip
    return Plan(
        name="p",
        source_database="d",
        lake_database="lake_db",
        tables=(A, B, STREAMED),
        deliveries=(stream,),
    )


def arrived(logs: Logs, begin: int = 0, progress: Progress | None = None) -> dict[str, Any]:
    progress = progress or Progress(epoch=1)
    progress.tables["c"] = TableProgress(offsets={0: 5})
    find = delivered_offsets(
        cast(Reader, logs), plan(), lambda topics: {t: {0: begin} for t in topics}
    )
    return dict(find(progress))


def noted(since: int | None, age_s: float = 0.0) -> Progress:
    """Progress of epoch 2, whose snapshot was complete `age_s` ago at offset 42."""
    return Progress(
        epoch=2,
        complete_snapshot=str(snapshot_start(2, 50)),
        completed_at=time.time() - age_s,
        snapshot_topics={} if since is None else {"p.trade": SnapshotTopic("id", since)},
        tables={"a": TableProgress(snapshot_ends={0: 42})},
    )


def test_a_domains_tables_have_come_as_far_as_the_newest_event_of_any() -> None:
    logs = Logs(a=[event("c", 1, 1, id=1, offset=3)], b=[event("c", 1, 2, id=1, offset=7)])
    assert arrived(logs) == {"a": {0: 8}, "b": {0: 8}, "c": {0: 5}}


@pytest.mark.parametrize("begin", [0, 9])
def test_nobody_waits_for_what_kafka_has_let_go(begin: int) -> None:
    assert arrived(Logs(), begin) == {"a": {0: begin}, "b": {0: begin}, "c": {0: 5}}


def test_a_delete_has_a_record_without_a_value_behind_it() -> None:
    logs = Logs(a=[event("c", 1, 1, id=1, offset=3), event("d", 1, 2, id=1, offset=4)])
    assert arrived(logs)["a"] == {0: 6}


@pytest.mark.parametrize(("since", "reached"), [(1, 42), (2, 0), (None, 0)])
def test_events_of_a_lost_topic_do_not_count(since: int | None, reached: int) -> None:
    logs = Logs(a=[event("c", 1, 1, id=1, offset=41)])  # as many as the snapshot has rows
    assert arrived(logs, progress=noted(since))["a"] == {0: reached}
    new = {**event("r", 1, 2, id=1, offset=3), "cdc_epoch": 2}
    expected = {0: max(4, reached)}
    assert arrived(Logs(a=[new], b=logs.logs["a"]), progress=noted(since))["a"] == expected


def test_no_record_of_the_snapshot_is_awaited_for_ever() -> None:
    assert arrived(Logs(), progress=noted(None, DELIVERY_S - 60))["b"] == {0: 0}
    assert arrived(Logs(), progress=noted(None, DELIVERY_S + 60))["b"] == {0: 42}


def test_a_row_without_a_place_tells_nothing() -> None:
    assert arrived(Logs(a=[{**event("c", 1, 1, id=1), "cdc_offset": None}]))["a"] == {0: 0}
