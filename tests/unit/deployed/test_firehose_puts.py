"""The function of put tables: typed rows, each bad record alone, and the user's handler first."""

# ruff: noqa: E501  (the cases stand in rows)
from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cdclake.config.resolve import load_plan
from cdclake.puts.put_table import PutStream
from cdclake.puts.put_transform import PutTransform
from tests.load_function import FOLDER, load_file

ARRIVED_MS = 1_790_000_000_123
COLUMNS = """{id: bigint, userId: text, price: "numeric(10,2)", big: "numeric(38,0)", at: timestamptz,
      local: timestamp, day: date, ok: boolean, ratio: double precision, small: int, body: jsonb}"""
ONE = f"    columns: {COLUMNS}\n    key: [id]\n"
ROUTED = """\
    route: kind
    tables:
      orders: {columns: {id: int, kind: text}, key: [id], values: [order, refund]}
      views: {columns: {id: text, page: text}}
"""
HANDLER = """
import base64, json
from .rename import renamed

def handler(event, context):
    answers = []
    for record in event["records"]:
        found = json.loads(base64.b64decode(record["data"]))
        if found.get("drop"):
            answers.append({"recordId": record["recordId"], "result": "Dropped"})
        elif found.get("refuse"):
            answers.append({"recordId": record["recordId"], "result": "ProcessingFailed"})
        elif not found.get("forget"):
            data = base64.b64encode(json.dumps(renamed(found)).encode()).decode()
            answers.append({"recordId": record["recordId"], "result": "Ok", "data": data})
    return {"records": answers}
"""


class Function:
    """The function as it is deployed, in a folder with its table and the user's transform."""

    def __init__(
        self,
        folder: Path,
        settings: str = "",
        files: dict[str, str] | None = None,
        declared: str = ONE,
    ) -> None:
        for name, text in (files or {}).items():
            target = folder / "transform" / name
            target.parent.mkdir(exist_ok=True)
            target.write_text(text)
        file = folder / "shop.yaml"
        file.write_text(f"version: 1\nname: shop\nputs:\n  clicks:\n{declared}{settings}")
        [self.put] = load_plan(file).puts
        (folder / "put_stream.json").write_text(self.put.to_json())
        shutil.copy(FOLDER / "firehose_puts" / "firehose_puts.py", folder)
        self._module = load_file(folder / "firehose_puts.py")

    def answers(self, *records: bytes) -> list[dict[str, Any]]:
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
        answered: list[dict[str, Any]] = self._module.handler(event, None)["records"]
        assert [each["recordId"] for each in answered] == [str(n) for n in range(len(records))]
        return answered

    def row(self, record: bytes) -> dict[str, Any]:
        [answer] = self.answers(record)
        assert answer["result"] == "Ok", answer
        found: dict[str, Any] = json.loads(base64.b64decode(answer["data"]), parse_float=Decimal)
        return found


def record(**fields: Any) -> bytes:
    return json.dumps({"id": 1, **fields}).encode()


@pytest.fixture
def function(tmp_path: Path) -> Function:
    return Function(tmp_path)


def test_a_record_is_a_row_of_all_columns_and_its_arrival(function: Function) -> None:
    row = function.row(b'{"id": 7, "userId": "a"}\n')
    assert row == {
        **dict.fromkeys(column.name for column in function.put.targets[0].columns),
        "id": 7, "userid": "a", "arrived_at": ARRIVED_MS * 1000,
    }  # fmt: skip
    assert PutStream.from_raw(json.loads(function.put.to_json())) == function.put


@pytest.mark.parametrize(
    ("field", "given", "expected"),
    [
        ("id", "-9223372036854775808", -(2**63)), ("id", "9223372036854775807", 2**63 - 1),
        ("small", "-2147483648", -(2**31)), ("ok", "true", True), ("ok", "false", False),
        ("price", "12345678.90", Decimal("12345678.90")), ("price", "1e3", Decimal(1000)),
        ("price", '"-0.5"', Decimal("-0.50")), ("price", "1.5000", Decimal("1.50")), ("price", "0.000", 0),
        ("price", "0e999999", 0), ("big", "9" * 38, 10**38 - 1), ("big", f'"{"9" * 38}.0"', 10**38 - 1),
        ("ratio", "1", Decimal(1)), ("ratio", "0.1", Decimal("0.1")), ("ratio", "-1e300", Decimal("-1e300")),
        ("ratio", "0e-999", 0), ("ratio", "9007199254740992", 2**53), ("ratio", "1234567890123456800", Decimal("1234567890123456800")),
        ("day", '"2026-11-22"', 20779), ("day", '"1969-12-31"', -1),
        ("local", '"2026-11-22T19:00:00"', 1_795_374_000_000_000), ("local", '"1969-12-31 23:59:59.999999"', -1),
        ("at", '"2026-11-22T19:00:00.5Z"', 1_795_374_000_500_000), ("at", '"2026-11-22 21:00:00+02:00"', 1_795_374_000_000_000),
        ("userId", '""', ""), ("userId", r'"ü\u0000\n"', "ü\x00\n"), ("userId", "null", None),
        ("body", '{"b": [1.10, {"a": "ü"}], "c": null}', '{"b":[1.10,{"a":"ü"}],"c":null}'),
        ("body", "12345678901234567890.123", "12345678901234567890.123"), ("body", '"x"', '"x"'), ("body", "false", "false"),
    ],
)  # fmt: skip
def test_a_value_of_the_type_arrives_exactly(
    function: Function, field: str, given: str, expected: Any
) -> None:
    row = function.row(f'{{"id": 1, "{field}": {given}}}'.replace('"id": 1, "id"', '"id"').encode())
    assert row[field.lower()] == expected
    assert type(row[field.lower()]) is not bool or isinstance(expected, bool)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"", "not JSON"), (b"no json", "not JSON"), (b"\xff", "not JSON"), (b"[" * 100_000, "not JSON"), (b'{"id": 1e9999999999999999999}', "exponent"),
        (b"[]", "not a JSON object"), (b"null", "not a JSON object"),
        (b'{"id": 1}{"id": 2}', "more than one JSON object"), (b'{"id": 1}\n{"id": 2}\n', "more than one JSON object"),
        (b'{"id": 1, "id": 2}', "twice"), (b'{"id": 1, "ratio": NaN}', "NaN is not JSON"),
        (b"{}", "id: missing, but part of the key"), (b'{"id": null}', "id: missing"),
        (record(userid="x"), "a field without a declared column"), (record(id=True), "id: a boolean that is not an integer"),
        (record(id=2**63), "64 bits"), (record(id=1.0), "id: a number"), (record(id="1"), "id: text"),
        (record(small=2**31), "32 bits"), (record(ok=1), "true or false"), (record(ok="true"), "true or false"),
        (record(price=1.005), "numeric(10,2)"), (record(price=100_000_000), "numeric(10,2)"), (record(price="1e3"), "numeric(10,2)"),
        (record(price="٣"), "numeric(10,2)"), (record(price=True), "numeric(10,2)"), (b'{"id": 1, "price": 1e999999999}', "numeric(10,2)"),
        (b'{"id": 1, "ratio": 1e400}', "range of a double"), (b'{"id": 1, "ratio": -1e-400}', "range of a double"),
        (record(ratio=2**53 + 1), "an integer that a double holds"), (record(ratio="1"), "a number"), (record(ratio=True), "a number"),
        (record(day="2026-02-30"), "a date"), (record(day="20261122"), "a date"), (record(day=1), "a date"),
        (record(local="2026-11-22T19:00:00Z"), "without a zone"), (record(local="2026-11-22T24:00:00"), "without a zone"),
        (record(at="2026-11-22T19:00:00"), "with its zone"), (record(at="2026-11-22T19:00:00.1234567Z"), "with its zone"),
        (record(at=1_700_000_000), "with its zone"), (record(userId=5), "userId: a number that is not text"),
        (record(userId={"a": 1}), "userId: an object"), (b'{"id": 1, "userId": "\\ud800"}', "surrogate"),
        (b'{"id": 1, "body": ["\\ud800"]}', "surrogate"),
    ],
)  # fmt: skip
def test_what_does_not_fit_fails_alone_with_its_reason(
    function: Function, caplog: pytest.LogCaptureFixture, bad: bytes, reason: str
) -> None:
    first, failed, last = function.answers(record(), bad, record())
    assert failed == {"recordId": "1", "result": "ProcessingFailed"}
    assert (first["result"], last["result"]) == ("Ok", "Ok")
    [logged] = caplog.records
    assert logged.getMessage().startswith("1 of 3 failed: ") and reason in logged.getMessage()
    assert vars(logged)["refused"] == 1


def test_no_content_of_a_record_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    secret = "4111-1111"
    function = Function(tmp_path)
    function.answers(json.dumps({"id": 1, secret: 2}).encode(), record(ok=secret))
    answered = {"recordId": "0", "result": secret, "data": ""}
    transform = PutTransform(function.put, lambda event, context: {"records": [answered]})
    transform.answer({"records": [{"recordId": "0", "data": ""}]}, None)
    assert len(caplog.records) == 3
    assert secret not in caplog.text


def test_unknown_fields_are_omitted_where_the_file_allows_it(tmp_path: Path) -> None:
    row = Function(tmp_path, "    unknown_fields: ignore\n").row(record(other=1, body="b"))
    assert "other" not in row and row["body"] == '"b"'


def test_a_field_selects_the_table(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    function = Function(tmp_path, declared=ROUTED)
    answers = function.answers(
        b'{"kind": "order", "id": 1}', b'{"kind": "refund", "id": 2}',
        b'{"kind": "views", "id": "a", "page": "/"}', b'{"kind": "orders", "id": 3}', b'{"id": 4}',
        b'{"kind": null, "id": 5}', b'{"kind": ["order"], "id": 6}', b'{"kind": "views", "id": 7}',
        b'{"kind": "order"}', b'{"kind": "order", "id": 8, "page": "/"}',
    )  # fmt: skip
    made = [
        (json.loads(base64.b64decode(a["data"])), a["metadata"]["otfMetadata"])
        for a in answers
        if a["result"] == "Ok"
    ]
    into = {"destinationDatabaseName": "cdc_iceberg", "operation": "insert"}
    orders, views = ({**into, "destinationTableName": name} for name in ("orders", "views"))
    arrived = {"arrived_at": ARRIVED_MS * 1000}
    assert made == [
        ({"id": 1, "kind": "order", **arrived}, orders),
        ({"id": 2, "kind": "refund", **arrived}, orders),
        ({"id": "a", "page": "/", **arrived}, views),
    ]
    assert [a["result"] for a in answers[3:]] == ["ProcessingFailed"] * 7
    assert {record.getMessage(): vars(record)["refused"] for record in caplog.records} == {
        "2 of 10 failed: kind: its value selects no table": 2,
        "2 of 10 failed: kind: missing, but selects the table": 2,
        "1 of 10 failed: id: a number that is not text": 1,
        "1 of 10 failed: id: missing, but part of the key": 1,
        "1 of 10 failed: a field without a declared column; `unknown_fields: ignore` would omit it": 1,
    }


def test_rows_beyond_the_size_of_an_answer_fail_instead_of_the_whole_call(
    function: Function,
) -> None:
    results = [
        answer["result"] for answer in function.answers(*[record(userId="x" * 1_600_000)] * 3)
    ]
    assert results == ["Ok", "Ok", "ProcessingFailed"]


def test_the_size_of_an_answer_includes_where_its_rows_go(tmp_path: Path) -> None:
    small = b'{"kind": "views"}'
    answers = Function(tmp_path, declared=ROUTED).answers(*[small] * 25_000)
    assert answers[0]["result"] == "Ok" and answers[-1]["result"] == "ProcessingFailed"
    assert len(json.dumps({"records": answers})) < 6_291_456


def test_the_size_of_an_answer_includes_what_the_handler_dropped(function: Function) -> None:
    body = base64.b64encode(record(userId="x" * 300)).decode()
    records = [
        {"recordId": f"{n:056d}", "approximateArrivalTimestamp": ARRIVED_MS, "data": ""}
        for n in range(20_000)
    ]

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        made = [{"recordId": each["recordId"], "result": "Dropped"} for each in event["records"]]
        made[::2] = [{**each, "result": "Ok", "data": body} for each in made[::2]]
        return {"records": made}

    answer = PutTransform(function.put, handler).answer({"records": records}, None)
    results = [each["result"] for each in answer["records"]]
    assert results[0] == "Ok" and results[-2:] == ["ProcessingFailed", "Dropped"]
    assert len(json.dumps(answer)) < 6_000_000


def test_the_users_handler_runs_first(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    function = Function(
        tmp_path,
        "    transform: transform\n",
        {
            "handler.py": HANDLER,
            "rename.py": "def renamed(found):\n    return {'id': found['number'], **found.get('more', {})}\n",
        },
    )
    bodies = [
        {"number": 1},
        {"drop": 1},
        {"refuse": 1},
        {"forget": 1},
        {"number": 2, "more": {"ok": 3}},
        {"number": 3},
    ]
    answers = function.answers(*(json.dumps(each).encode() for each in bodies))
    assert [each["result"] for each in answers] == [
        "Ok", "Dropped", "ProcessingFailed", "ProcessingFailed", "ProcessingFailed", "Ok",
    ]  # fmt: skip
    assert [json.loads(base64.b64decode(answers[n]["data"]))["id"] for n in (0, 5)] == [1, 3]
    assert "transform: its answer is neither Ok nor Dropped" in caplog.text
    assert "transform: its answer has a record 0 times" in caplog.text
    assert "ok: a number that is not true or false" in caplog.text


def popped_ids(event: dict[str, Any]) -> list[Any]:
    return [{**ok(each), "recordId": each.pop("recordId")} for each in event["records"]]


def emptied_list(event: dict[str, Any]) -> list[Any]:
    return [ok(event["records"].pop(0)) for _ in range(3)]


def replaced_list(event: dict[str, Any]) -> list[Any]:
    event["records"][:] = event["records"][:1]
    return [ok(each) for each in event["records"]]


def malformed(event: dict[str, Any]) -> list[Any]:
    first, *_ = event["records"]
    return [ok(first), None, "1", {"result": "Ok"}, {**ok(first), "recordId": ["1"]}]


def ok(given: dict[str, Any]) -> dict[str, Any]:
    return {"recordId": given.get("recordId"), "result": "Ok", "data": given["data"]}


@pytest.mark.parametrize(
    ("handler", "made"),
    [(popped_ids, 3), (emptied_list, 3), (replaced_list, 1), (malformed, 1)],
)
def test_a_handler_that_changes_its_event_or_answers_amiss_fails_only_unanswered_records(
    function: Function,
    caplog: pytest.LogCaptureFixture,
    handler: Callable[[dict[str, Any]], list[Any]],
    made: int,
) -> None:
    data = base64.b64encode(record()).decode()
    records = [
        {"recordId": str(n), "approximateArrivalTimestamp": ARRIVED_MS, "data": data}
        for n in range(3)
    ]
    transform = PutTransform(function.put, lambda event, _: {"records": handler(event)})
    answers = transform.answer({"records": records}, None)["records"]
    failed = 3 - made
    assert [each["recordId"] for each in answers] == ["0", "1", "2"]
    assert [each["result"] for each in answers] == ["Ok"] * made + ["ProcessingFailed"] * failed
    logged = [vars(each)["refused"] for each in caplog.records]
    assert logged == ([failed] if failed else [])


def test_an_error_of_the_users_handler_fails_the_call_with_its_message(tmp_path: Path) -> None:
    broken = {"handler.py": "def handler(event, context):\n    return 1 / 0\n"}
    function = Function(tmp_path, "    transform: transform\n", broken)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        function.answers(record())
