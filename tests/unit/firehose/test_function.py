"""Calling the function: what is retried, and which answers are none."""

import base64
import threading
from dataclasses import replace
from typing import Any

import pytest

from cdclake.config.checks.firehose import WRAPPING_BYTES, fitting_mib
from cdclake.local.firehose.fault_injection import FaultInjector
from cdclake.local.firehose.function import MAX_CALL_BYTES, Handler, LocalFunction
from cdclake.local.firehose.records import Failure, Made, Record
from tests.recorded.firehose import handed_over, stream_of
from tests.recorded.recording import Recording

TABLE = Recording.load("changes").plan.table("plain")
RECORDS = [Record(0, offset, 1_790_000_000_000, b'{"n": %d}' % offset) for offset in range(3)]


def transform(handler: Handler, **how: Any) -> tuple[list[Made], list[Failure]]:
    settings = {"function_retries": how.pop("retries", 2)}
    return LocalFunction(handler, stream_of(TABLE, **settings), **how).transform(RECORDS)


def ok(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return {"records": [answer(record) for record in event["records"]]}


def answer(record: dict[str, Any], **other: Any) -> dict[str, Any]:
    given = {"recordId": record["recordId"], "kafkaRecordValue": record["kafkaRecordValue"]}
    return {**given, "result": "Ok", **other}


def test_the_call_has_the_form_that_aws_documents() -> None:
    recorded = Recording.load("changes").of_topic(TABLE.topic)
    [first] = handed_over(recorded[:1])["records"]
    assert first.keys() == {
        "recordId", "approximateArrivalTimestamp", "mskRecordMetadata", "kafkaRecordValue",
    }  # fmt: skip
    place = first["mskRecordMetadata"]
    assert (place["offset"], place["partitionId"]) == (str(recorded[0].offset), "0")
    assert base64.b64decode(first["kafkaRecordValue"]) == recorded[0].value


def test_rows_come_with_what_the_function_says_of_them() -> None:
    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"records": [answer(r, metadata={"to": "x"}) for r in event["records"]]}

    made, failures = transform(handler)
    assert made == [Made(record, record.value or b"", {"to": "x"}) for record in RECORDS]
    assert failures == []


def test_dropped_records_are_gone_and_failed_ones_keep_their_bytes() -> None:
    results = ("Dropped", "ProcessingFailed", "Ok")

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        pairs = zip(event["records"], results, strict=True)
        return {"records": [answer(record, result=result) for record, result in pairs]}

    made, [failure] = transform(handler)
    assert [row.record.offset for row in made] == [2]
    assert (failure.record, failure.raw) == (RECORDS[1], RECORDS[1].value)
    assert (failure.code, failure.attempts) == ("Lambda.ProcessingFailedStatus", 1)


def twice(event: dict[str, Any], context: Any) -> dict[str, Any]:
    answers = [answer(record) for record in event["records"]]
    return {"records": [answers[0], *answers]}


def without_the_last(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return {"records": [answer(record) for record in event["records"][:2]]}


@pytest.mark.parametrize(
    ("handler", "failed", "code"),
    [
        (twice, [0], "Lambda.DuplicatedRecordId"),
        (without_the_last, [2], "Lambda.MissingRecordId"),
        (
            lambda event, _: {"records": [answer(r, result="Fine") for r in event["records"]]},
            [0, 1, 2], "Lambda.JsonProcessingException",
        ),
        (
            lambda call, _: {"records": [answer(r, kafkaRecordValue="%") for r in call["records"]]},
            [0, 1, 2], "Lambda.JsonProcessingException",
        ),
        (lambda event, _: {"rows": []}, [0, 1, 2], "Lambda.JsonProcessingException"),
        (lambda event, _: {"records": object()}, [0, 1, 2], "Lambda.FunctionError"),
        (
            lambda event, _: {"records": [answer(event["records"][0], more="x" * MAX_CALL_BYTES)]},
            [0, 1, 2], "Lambda.FunctionError",
        ),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_fails_its_records(
    handler: Handler, failed: list[int], code: str
) -> None:
    _, failures = transform(handler)
    assert [failure.record.offset for failure in failures] == failed
    assert {failure.code for failure in failures} == {code}


def test_a_call_that_throws_is_tried_again() -> None:
    calls = []

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        calls.append(event)
        if len(calls) < 3:
            raise RuntimeError("not yet")
        return ok(event, context)

    made, failures = transform(handler)
    assert (len(made), failures, len(calls)) == (3, [], 3)
    calls.clear()
    made, failures = transform(handler, retries=1)
    assert (made, len(calls)) == ([], 2)
    assert {(f.code, f.attempts) for f in failures} == {("Lambda.FunctionError", 2)}
    assert "RuntimeError: not yet" in failures[0].message


def test_a_call_that_does_not_end_fails() -> None:
    end = threading.Event()
    _, failures = transform(lambda *_: end.wait(30) and {}, retries=0, limit_s=0.05)  # type: ignore[arg-type]
    end.set()
    assert {failure.code for failure in failures} == {"Lambda.FunctionTimedOut"}


def test_a_record_that_no_call_has_room_for_fails() -> None:
    large = Record(0, 9, 0, b"x" * MAX_CALL_BYTES)
    made, [failure] = LocalFunction(ok, stream_of(TABLE)).transform([large])
    assert (made, failure.code) == ([], "Lambda.FunctionRequestTooLarge")


@pytest.mark.parametrize(
    ("source", "values", "wrapping"),
    [
        ("msk", [b"x" * 460, None], 2 * WRAPPING_BYTES["msk"]),  # deletes with their tombstones
        ("kinesis", [b'{"id":123456,"v":7}'], WRAPPING_BYTES["kinesis"]),
        ("direct_put", [b'{"id":123456}'], WRAPPING_BYTES["direct_put"]),
    ],
)
def test_calls_of_the_size_that_fits_are_accepted(
    source: Any, values: list[bytes | None], wrapping: int
) -> None:
    """Firehose fills a call by the records' bytes: a tombstone has none."""
    size = sum(len(value or b"") for value in values)

    def failed(mib: float) -> set[str]:
        count = int(mib * (1 << 20)) // size
        records = [Record(0, n, 1_790_000_000_000, v) for n in range(count) for v in values]
        stream = replace(stream_of(TABLE, function_retries=0), source=source)
        _, failures = LocalFunction(lambda *_: {"records": []}, stream).transform(records)
        return {failure.code for failure in failures}

    assert failed(3) == {"Lambda.FunctionRequestTooLarge"}
    assert failed(fitting_mib(size, wrapping)) == {"Lambda.MissingRecordId"}  # of an empty answer


class CountedFaults(FaultInjector):
    """Faults with a count of the failed calls."""

    failed_calls = 0

    def should_fail(self) -> bool:
        fails = super().should_fail()
        self.failed_calls += fails
        return fails


def test_asked_for_failures_are_fewer_than_what_is_retried() -> None:
    faults = CountedFaults(3, ["fail"])
    for _ in range(50):
        made, failures = transform(ok, faults=faults)
        assert (len(made), failures) == (3, [])
    assert faults.failed_calls > 0


@pytest.mark.parametrize(
    ("source", "metadata"),
    [
        ("direct_put", {}),
        (
            "kinesis",
            {
                "shardId": "shardId-000000000007", "partitionKey": "k", "sequenceNumber": "3",
                "subsequenceNumber": "", "approximateArrivalTimestamp": 5,
            },
        ),
    ],
)  # fmt: skip
def test_other_sources_hand_over_and_take_data(source: str, metadata: dict[str, Any]) -> None:
    calls: list[dict[str, Any]] = []

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        calls.append(event)
        [record] = event["records"]
        upper = base64.b64encode(base64.b64decode(record["data"]).upper()).decode()
        return {"records": [{"recordId": record["recordId"], "result": "Ok", "data": upper}]}

    stream = stream_of(TABLE, name="logs", source=source, topic="s" if metadata else "")
    record = Record(7, 3, 5, b"abc", "k")
    made, failures = LocalFunction(handler, stream).transform([record])
    assert (made, failures) == ([Made(record, b"ABC", {})], [])
    [call] = calls
    assert ("sourceKinesisStreamArn" in call) == (source == "kinesis")
    assert "sourceMSKArn" not in call
    [handed] = call["records"]
    assert handed.pop("kinesisRecordMetadata", {}) == metadata
    assert handed == {
        "recordId": record.id, "approximateArrivalTimestamp": 5, "data": "YWJj",
    }  # fmt: skip
