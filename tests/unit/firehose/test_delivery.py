"""A stream's turns: what reaches the logs, what fails, and from where it is read again."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from cdclake import naming
from cdclake.errors import InputError
from cdclake.local.firehose.delivery import Delivery
from cdclake.local.firehose.fault_injection import KINDS, NO_FAULTS, FaultInjector
from cdclake.local.firehose.function import LocalFunction
from cdclake.local.firehose.records import Record
from tests.recorded.firehose import (
    Kept,
    Logs,
    RecordedTopic,
    deliver,
    delivered,
    handler_of,
    made_rows,
    read_by_firehose,
    stream_of,
)
from tests.recorded.recording import Recording

RECORDING = Recording.load("changes")
PLAN = delivered(RECORDING.plan)
TABLE = PLAN.table("plain")
RECORDS = RECORDING.of_topic(TABLE.topic)
ROWS = made_rows(RECORDS, TABLE, PLAN)


def without_moment(row: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in row.items() if name != naming.INGESTED_AT}
    return json.dumps(rest, sort_keys=True)


WANTED = {without_moment(json.loads(json.dumps(row))) for row in ROWS.values()}


def make(
    logs: Logs,
    kept: Kept,
    *,
    faults: FaultInjector = NO_FAULTS,
    clock: "Clock | None" = None,
    **settings: Any,
) -> tuple[Delivery, RecordedTopic]:
    topic = RecordedTopic([read_by_firehose(record) for record in RECORDS])
    stream = stream_of(TABLE, **settings)
    time = clock or Clock()
    delivery = Delivery(
        stream, PLAN.lake_database, source=topic, tables=logs, errors=kept, faults=faults,
        function=LocalFunction(handler_of(PLAN), stream), clock=time, pause=time.pass_by,
    )  # fmt: skip
    return delivery, topic


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


def test_every_event_is_delivered_once_when_nothing_goes_wrong() -> None:
    done = deliver(RECORDS, TABLE, PLAN)
    assert Counter(map(without_moment, done.rows)) == Counter(WANTED)
    assert done.kept.failures == []
    assert done.topic.committed == {0: RECORDS[-1].offset + 1}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", KINDS)
def test_trouble_loses_nothing_and_invents_nothing(kind: str, seed: int) -> None:
    done = deliver(RECORDS, TABLE, PLAN, FaultInjector(seed, [kind]))
    assert {without_moment(row) for row in done.rows} == WANTED
    assert done.kept.failures == []
    assert done.topic.committed == {0: RECORDS[-1].offset + 1}


def test_trouble_is_what_was_asked_for() -> None:
    def offsets(*kinds: str) -> list[int]:
        return [
            row[naming.OFFSET]
            for row in deliver(RECORDS, TABLE, PLAN, FaultInjector(1, kinds)).rows
        ]

    calm = deliver(RECORDS, TABLE, PLAN)
    in_order = [row[naming.OFFSET] for row in calm.rows]
    assert offsets() == in_order == sorted(in_order)
    assert offsets("shuffle") != in_order and sorted(offsets("shuffle")) == in_order
    assert offsets("delay") != in_order and sorted(offsets("delay")) == in_order
    assert len(offsets("duplicate")) > len(in_order) and {*offsets("duplicate")} == {*in_order}
    assert len(offsets("fail")) > len(in_order)
    assert offsets("shuffle", "delay") == offsets("shuffle", "delay")
    split = deliver(RECORDS, TABLE, PLAN, FaultInjector(1, ["split"]))
    assert len(split.logs.commits) > len(calm.logs.commits)


def test_nothing_is_forgotten_before_it_is_in_a_log() -> None:
    class Broken(Logs):
        def append(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
            raise KeyboardInterrupt

    delivery, topic = make(Broken(PLAN), Kept())
    with pytest.raises(KeyboardInterrupt):
        delivery.turn()
    assert topic.committed == {}


@pytest.mark.parametrize("seed", range(5))
def test_who_dies_leaves_all_that_is_not_delivered_to_the_next(seed: int) -> None:
    logs, kept = Logs(PLAN), Kept()
    delivery, topic = make(logs, kept, faults=FaultInjector(seed, ["delay", "shuffle"]))
    delivery.turn()
    delivery.turn()
    again, topic_again = make(logs, kept)
    committed = topic.committed.get(0, 0)
    topic_again.records = [r for r in topic_again.records if r.offset >= committed]
    again.drain()
    rows = [row for _, rows in logs.commits for row in rows]
    assert {without_moment(row) for row in rows} == WANTED


def test_rows_wait_for_time_or_size_but_not_for_long() -> None:
    clock, logs = Clock(), Logs(PLAN)
    delivery, topic = make(logs, Kept(), clock=clock, buffer_seconds=900, function_seconds=900)
    delivery.turn()
    assert not logs.commits
    clock.now = 1.0  # a call waits a second at most here
    delivery.turn()
    assert not logs.commits
    clock.now = 10.9
    delivery.turn()
    assert not logs.commits and not topic.committed
    clock.now = 11.0  # and an append ten
    delivery.turn()
    assert logs.commits and topic.committed


def test_what_cannot_be_appended_goes_to_the_error_prefix_after_the_time_of_the_file() -> None:
    class Broken(Logs):
        tried = 0

        def append(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
            self.tried += 1
            raise OSError("no")

    logs, kept = Broken(PLAN), Kept()
    delivery, topic = make(logs, kept, retry_seconds=3)
    topic.at_once = 100
    delivery.turn()
    assert logs.tried == 4  # now, and after 1, 2 and 3 seconds
    assert {kind for kind, _ in kept.failures} == {"iceberg-failed"}
    assert {f.code for _, f in kept.failures} == {"Iceberg.DeliveryFailed"}
    assert {f.attempts for _, f in kept.failures} == {4}
    offsets = [failure.record.offset for _, failure in kept.failures]
    assert sorted(offsets) == sorted(ROWS)
    assert topic.committed == {0: RECORDS[-1].offset + 1}


def test_one_bad_record_fails_alone() -> None:
    records = [RECORDS[0], RECORDS[1]]
    topic = RecordedTopic([*map(read_by_firehose, records), Record(0, 99, 0, b"no json")])
    logs, kept, stream = Logs(PLAN), Kept(), stream_of(TABLE)
    delivery = Delivery(
        stream, PLAN.lake_database, source=topic, tables=logs, errors=kept,
        function=LocalFunction(handler_of(PLAN), stream),
    )  # fmt: skip
    delivery.drain()
    [(kind, failure)] = kept.failures
    assert (kind, failure.raw) == ("processing-failed", b"no json")
    assert [row[naming.OFFSET] for _, rows in logs.commits for row in rows] == [0, 1]


def test_a_row_that_the_table_does_not_fit_fails_alone() -> None:
    class Narrower(Logs):
        def schema(self, table: str) -> Any:
            schema = super().schema(table)
            return type(schema)(*(f for f in schema.fields if f.name != TABLE.columns[1].name))

    logs, kept = Narrower(PLAN), Kept()
    delivery, _ = make(logs, kept)
    delivery.drain()
    assert not logs.commits
    assert {f.code for _, f in kept.failures} == {"Iceberg.UnknownColumn"}
    assert {json.loads(f.raw)[naming.OFFSET] for _, f in kept.failures} == {*ROWS}


@pytest.mark.parametrize("spelled", ["x:fail", "1:fall", "1", "1:"])
def test_trouble_rejects_invalid_text(spelled: str) -> None:
    with pytest.raises(InputError, match="invalid fault injection"):
        FaultInjector.parse(spelled)


def test_trouble_as_text() -> None:
    assert FaultInjector.parse("") is NO_FAULTS
    assert FaultInjector.parse("3:shuffle,delay").order(range(9)) == FaultInjector(
        3, ["shuffle"]
    ).order(range(9))


def test_without_a_function_records_are_rows_as_they_come() -> None:
    rows = [json.dumps(row).encode() for row in ROWS.values()]
    topic = RecordedTopic([Record(0, at, 0, data) for at, data in enumerate([*rows, b"no json"])])
    logs, kept, stream = Logs(PLAN), Kept(), replace(stream_of(TABLE), table=TABLE.changes)
    delivery = Delivery(
        stream, PLAN.lake_database, source=topic, tables=logs, errors=kept, function=None
    )
    delivery.drain()
    assert [dict(row) for _, rows in logs.commits for row in rows] == [*ROWS.values()]
    assert [(kind, f.raw) for kind, f in kept.failures] == [("iceberg-failed", b"no json")]
    assert topic.committed == {0: len(rows) + 1}
