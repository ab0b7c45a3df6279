"""How far Firehose's tables have come, by the places of the events in their logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import duckdb
import pytest

from cdclake.firehose.stream import DeliveryStream
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.verify.firehose_offsets import delivered_offsets
from cdclake.plan import Plan, Table
from tests.unit.verify.lakes import create, event, make_table

A, B = (make_table(name=n, table=n, topic="p.trade", delivery="firehose") for n in ("a", "b"))
STREAMED = make_table(name="c", table="c", topic="p.public.c")


class Logs:
    """A reader of logs that are in memory."""

    def __init__(self, **logs: list[dict[str, Any]]) -> None:
        self._logs = logs

    @contextmanager
    def open(self, tables: list[Table]) -> Iterator[duckdb.DuckDBPyConnection]:
        with duckdb.connect(":memory:") as session:
            for table in tables:
                create(session, table, self._logs.get(table.name, []))
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


def arrived(logs: Logs, begin: int = 0, epoch: int = 1, end: int = 100) -> dict[str, Any]:
    progress = Progress(epoch=epoch, tables={"c": TableProgress(offsets={0: 5})})
    find = delivered_offsets(
        cast(Reader, logs),
        plan(),
        begins=lambda topics: {t: {0: begin} for t in topics},
        ends=lambda topics: {t: {0: end} for t in topics},
    )
    return dict(find(progress))


def test_a_domains_tables_have_come_as_far_as_the_newest_event_of_any() -> None:
    logs = Logs(a=[event("c", 1, 1, id=1, offset=3)], b=[event("c", 1, 2, id=1, offset=7)])
    assert arrived(logs) == {"a": {0: 8}, "b": {0: 8}, "c": {0: 5}}


@pytest.mark.parametrize("begin", [0, 9])
def test_nobody_waits_for_what_kafka_has_let_go(begin: int) -> None:
    assert arrived(Logs(), begin) == {"a": {0: begin}, "b": {0: begin}, "c": {0: 5}}


def test_a_delete_has_a_record_without_a_value_behind_it() -> None:
    logs = Logs(a=[event("c", 1, 1, id=1, offset=3), event("d", 1, 2, id=1, offset=4)])
    assert arrived(logs)["a"] == {0: 6}


def test_events_of_an_earlier_epoch_may_be_of_a_topic_that_is_lost() -> None:
    new = {**event("r", 1, 2, id=1, offset=3), "cdc_epoch": 2}
    old = [event("c", 1, 1, id=1, offset=offset) for offset in (98, 99, 1000)]
    logs = Logs(a=[*old, new])
    assert arrived(logs, epoch=2)["a"] == {0: 4}
    assert arrived(logs, epoch=1)["a"] == {0: 1001}


def test_events_of_an_earlier_epoch_count_in_a_topic_that_was_kept() -> None:
    logs = Logs(a=[event("c", 1, 1, id=1, offset=41)])
    assert arrived(logs, epoch=2, end=42)["a"] == {0: 42}


def test_a_row_without_a_place_tells_nothing() -> None:
    assert arrived(Logs(a=[{**event("c", 1, 1, id=1), "cdc_offset": None}]))["a"] == {0: 0}
