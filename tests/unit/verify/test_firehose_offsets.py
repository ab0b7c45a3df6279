"""Offsets that Firehose's tables have reached, from the positions in their changelogs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import duckdb
import pytest

from cdclake.debezium.position import Position, snapshot_start
from cdclake.firehose.arrival import DELIVERY_S
from cdclake.firehose.erased_rows import Erased
from cdclake.firehose.stream import DeliveryStream
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.control.topic_state import SnapshotTopic
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.verify import firehose_offsets
from cdclake.jobs.verify.firehose_offsets import delivered_offsets
from cdclake.jobs.verify.settled_records import PAGE_RECORDS
from cdclake.jobs.verify.topic_records import Ranges, ReadRecord
from cdclake.plan import Plan, Table
from tests.unit.deployed.erasing import in_memory
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
        error_prefix="firehose", mib_per_second=1,
    )  # fmt: skip
    return Plan(
        name="p",
        source_database="d",
        lake_database="lake_db",
        tables=(A, B, STREAMED),
        deliveries=(stream,),
    )


class Topics:
    """A topic of one partition, whose records begin at `begin`."""

    def __init__(self, begin: int = 0, records: Sequence[bytes | None] = ()) -> None:
        self.begin, self.records = begin, records
        self.read_ranges: list[tuple[int, int]] = []

    def begins(self, topics: Collection[str]) -> dict[str, dict[int, int]]:
        return {topic: {0: self.begin} for topic in topics}

    def ends(self, topics: Collection[str]) -> dict[str, dict[int, int]]:
        return {topic: {0: self.begin + len(self.records)} for topic in topics}

    def read(self, topic: str, ranges: Ranges) -> list[ReadRecord]:
        assert topic == "p.trade"
        first, following = ranges[0]
        self.read_ranges.append((first, following))
        places = range(first, following)
        return [ReadRecord(0, offset, self.records[offset - self.begin]) for offset in places]


def finder(
    topics: Topics,
    logs: Logs | None = None,
    *,
    tables: Collection[Table] = (A, STREAMED),
    erased: Erased | None = None,
) -> Callable[[Progress], Any]:
    reader = cast(Reader, logs or Logs())
    return delivered_offsets(reader, plan(), tables, topics, lambda: erased or {})


def arrived(
    logs: Logs,
    begin: int = 0,
    progress: Progress | None = None,
    *,
    topics: Topics | None = None,
    erased: Erased | None = None,
) -> dict[str, Any]:
    progress = progress or Progress(epoch=1)
    progress.tables["c"] = TableProgress(offsets={0: 5})
    return dict(finder(topics or Topics(begin), logs, erased=erased)(progress))


def change(op: str, lsn: int, number: int, table: str = "a", **values: Any) -> bytes:
    """An event as Debezium sends it; its transaction's commit is at `lsn`."""
    source = {
        "schema": "public",
        "table": table,
        "txId": lsn,
        "ts_us": lsn,
        "lsn": lsn,
        "sequence": json.dumps([str(lsn), str(lsn)]),
    }
    row = {"id": number, "v": 1, "big": None, **values}
    images = {"before": row, "after": None} if op == "d" else {"before": None, "after": row}
    return json.dumps({"op": op, "source": source, "cdc_epoch": "1", **images}).encode()


def redriven(op: str, lsn: int, number: int) -> dict[str, Any]:
    """The row that a redrive makes of such an event."""
    row = event(op, lsn, lsn, id=number, v=1, offset=0)
    return {**row, "cdc_offset": None, "cdc_partition": None}


TAIL = [change("d", 20, 7), None]  # the topic's last records: a delete and its tombstone


def test_records_of_an_erased_row_are_not_awaited() -> None:
    logs = Logs(b=[event("c", 1, 1, id=1, offset=0)])
    topics = Topics(records=[change("c", 1, 1, "b"), change("c", 10, 7), *TAIL])
    assert arrived(logs, topics=topics)["a"] == {0: 1}
    before = in_memory(A, {(7,): str(Position(1, 20, 1, 20, 0))})
    assert arrived(logs, topics=topics, erased=before)["a"] == {0: 2}  # it was created again
    erased = in_memory(A, {(7,): str(Position(1, 21, 0, 0, 0))})
    assert arrived(logs, topics=topics, erased=erased)["a"] == {0: 4}


def test_redriven_records_have_arrived_without_their_offsets() -> None:
    first = event("c", 1, 1, id=1, offset=0)
    topics = Topics(records=[change("c", 1, 1), change("c", 10, 7), *TAIL])
    assert arrived(Logs(a=[first, redriven("d", 20, 7)]), topics=topics)["a"] == {0: 1}
    assert arrived(Logs(a=[first, redriven("c", 10, 8)]), topics=topics)["a"] == {0: 1}
    whole = Logs(a=[first, redriven("c", 10, 7), redriven("d", 20, 7)])
    assert arrived(whole, topics=topics)["a"] == {0: 4}


def test_what_the_function_refuses_or_drops_is_not_awaited() -> None:
    refused = change("c", 10, 7, v=3_000_000_000)
    heartbeat = b'{"ts_ms": 1, "cdc_epoch": "1"}'
    topics = Topics(records=[refused, heartbeat, None, change("c", 11, 8, "unknown")])
    assert arrived(Logs(), topics=topics)["a"] == {0: 4}
    topics = Topics(records=[refused, change("c", 20, 8), None])
    assert arrived(Logs(), topics=topics)["a"] == {0: 1}


def test_settled_records_are_read_by_pages_until_one_is_open() -> None:
    records = [None] * (2 * PAGE_RECORDS) + [change("c", 9, 9)] + [None] * PAGE_RECORDS
    topics = Topics(records=records)
    assert arrived(Logs(), topics=topics)["a"] == {0: 2 * PAGE_RECORDS}
    assert topics.read_ranges == [
        (page * PAGE_RECORDS, (page + 1) * PAGE_RECORDS) for page in range(3)
    ]


def test_settled_records_are_not_read_again() -> None:
    records = [None] * (PAGE_RECORDS + 1) + [change("c", 9, 9)]
    topics, logs = Topics(records=records), Logs()
    find = finder(topics, logs)
    for _ in range(2):
        assert find(Progress(epoch=1))["a"] == {0: PAGE_RECORDS + 1}
    last = (PAGE_RECORDS + 1, PAGE_RECORDS + 2)  # not settled
    assert topics.read_ranges == [(0, PAGE_RECORDS), (PAGE_RECORDS, PAGE_RECORDS + 2), last]
    logs.logs["a"] = [event("c", 9, 9, id=9, offset=PAGE_RECORDS + 1)]
    assert find(Progress(epoch=1))["a"] == {0: PAGE_RECORDS + 2}
    assert len(topics.read_ranges) == 3


def test_a_look_at_settled_records_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firehose_offsets, "MAX_LOOK_S", -1.0)
    topics = Topics(records=[None] * (PAGE_RECORDS + 2))
    find = finder(topics)
    assert find(Progress(epoch=1))["a"] == {0: PAGE_RECORDS}
    assert topics.read_ranges == [(0, PAGE_RECORDS)]
    assert find(Progress(epoch=1))["a"] == {0: PAGE_RECORDS + 2}


def test_streams_of_other_tables_are_not_read() -> None:
    topics = Topics(records=[None])
    assert finder(topics, tables=[STREAMED])(Progress(tables={"c": TableProgress()})) == {"c": {}}
    assert topics.read_ranges == []


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
