"""The function of web logs: what Fluent Bit has parsed becomes rows; each record id is answered."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.load_function import load

PARSED = {
    "remote_addr": "192.0.2.7", "remote_user": "-", "time_local": "22/Nov/2026:21:00:01 +0200",
    "request": "GET /?a=b HTTP/1.1", "status": 200, "body_bytes_sent": 615, "http_referer": "-",
    "http_user_agent": r"a \x22b\x22",
}  # fmt: skip
ARRIVED_MS = 1_790_000_000_123
REQUESTED = int(datetime(2026, 11, 22, 19, 0, 1, tzinfo=UTC).timestamp()) * 1_000_000
ROW = {
    "remote_addr": "192.0.2.7", "remote_user": None, "time_local": REQUESTED,
    "request": "GET /?a=b HTTP/1.1", "status": 200, "body_bytes_sent": 615, "http_referer": None,
    "http_user_agent": r"a \x22b\x22", "arrived_at": ARRIVED_MS * 1000,
}  # fmt: skip


def answers(*records: bytes) -> list[dict[str, Any]]:
    event = {
        "records": [
            {
                "recordId": str(number),
                "approximateArrivalTimestamp": ARRIVED_MS,
                "data": base64.b64encode(record).decode(),
            }
            for number, record in enumerate(records)
        ]
    }
    answered: list[dict[str, Any]] = load("firehose_requests").handler(event, None)["records"]
    assert [each["recordId"] for each in answered] == [str(n) for n in range(len(records))]
    return answered


def changed(**fields: Any) -> bytes:
    given = {**PARSED, **fields}
    return json.dumps({name: value for name, value in given.items() if value is not None}).encode()


def row_of(record: bytes) -> dict[str, Any]:
    [answer] = answers(record)
    assert answer["result"] == "Ok", answer
    row: dict[str, Any] = json.loads(base64.b64decode(answer["data"]))
    return row


def test_a_parsed_line_is_a_row_with_its_times_in_microseconds() -> None:
    assert row_of(changed()) == ROW
    assert row_of(changed() + b"\n") == ROW  # which Fluent Bit ends its records with


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"remote_user": "a b"}, {"remote_user": "a b"}),
        ({"request": None}, {"request": None}),  # empty: Fluent Bit leaves it out
        ({"request": "-"}, {"request": None}),
        ({"status": "404", "body_bytes_sent": "0"}, {"status": 404, "body_bytes_sent": 0}),
        ({"status": 0}, {"status": 0}),  # nginx's of a request that nobody answered
        ({"body_bytes_sent": 2**63 - 1}, {"body_bytes_sent": 2**63 - 1}),
        ({"container_name": "nginx"}, {}),
        ({"http_user_agent": "ü"}, {"http_user_agent": "ü"}),
    ],
)
def test_fields_as_they_may_come(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert row_of(changed(**fields)) == ROW | expected


@pytest.mark.parametrize(
    "record",
    [
        b"", b"no json", b"[]", b"null", b"\xff", b"[" * 100_000,
        json.dumps({"log": "what the parser did not take", "container_name": "nginx"}).encode(),
        changed(remote_addr=None), changed(time_local=None), changed(time_local="22/11/2026"),
        changed(status=None), changed(status=True), changed(status="2x0"), changed(status=1000),
        changed(status="٢٠٠"), changed(body_bytes_sent=-1), changed(body_bytes_sent=2**63),
        changed(body_bytes_sent="9" * 5000), changed(request=5), changed(request="\ud800"),
    ],
)  # fmt: skip
def test_what_is_no_parsed_line_fails_alone(record: bytes) -> None:
    first, bad, last = answers(changed(), record, changed())
    assert bad == {"recordId": "1", "result": "ProcessingFailed"}
    assert (first["result"], last["result"]) == ("Ok", "Ok")


def test_the_log_says_each_reason_once(caplog: pytest.LogCaptureFixture) -> None:
    answers(b"{}", b"{}", changed(status=None), b"x")
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "2 of 4 failed", "1 of 4 failed", "1 of 4 failed",
    ]  # fmt: skip
    assert "no remote_addr" in caplog.text and "status is not an integer" in caplog.text
