"""Put tables on a real lake: Direct PUT, Kinesis, routes, a transform, failures."""

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from cdclake.local.components.installed import REGION
from tests.kpl import aggregated
from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.timeout(300)]

FILE = """\
version: 1
name: site
firehose: {buffer: {seconds: 1}, function: {seconds: 0, retries: 0}}
puts:
  clicks:
    columns: {id: bigint, userId: text, price: "numeric(10,2)", put_at: timestamptz,
      local: timestamp, day: date, ok: boolean, ratio: double precision, small: int, body: jsonb}
    key: [id]
    partition_by: [day(put_at), ok]
  visits:
    source: kinesis
    columns: {id: int, page: text}
    key: [id]
    transform: transforms/visits
  orders:
    columns: {id: int, page: text}
    transform: transforms/visits
  events:
    route: kind
    tables:
      bought: {columns: {id: int, kind: text}, key: [id], values: [order, refund]}
      viewed: {columns: {page: text}}
"""
HANDLER = """\
import base64
import json


def handler(event, context):
    answers = []
    for record in event["records"]:
        number, _, page = base64.b64decode(record["data"]).decode().partition(",")
        if page == "/health":
            answers.append({"recordId": record["recordId"], "result": "Dropped"})
            continue
        if not number.isdecimal():
            answers.append({"recordId": record["recordId"], "result": "ProcessingFailed"})
            continue
        row = json.dumps({"id": int(number), "page": page}).encode()
        data = base64.b64encode(row).decode()
        answers.append({"recordId": record["recordId"], "result": "Ok", "data": data})
    return {"records": answers}
"""
CLICK = {
    "id": 2**60, "userId": "ü", "price": "12345678.90", "put_at": "2026-11-22T21:00:00.5+02:00",
    "local": "2026-11-22T19:00:00", "day": "2026-11-22", "ok": True, "ratio": 0.1, "small": -5,
    "body": {"a": [1, None]},
}  # fmt: skip


class Puts:
    """The lake and its clients."""

    def __init__(self, lake: RunningLake, folder: Path) -> None:
        self.lake, self.folder = lake, folder
        (folder / "transforms" / "visits").mkdir(parents=True)
        self.handler = folder / "transforms" / "visits" / "handler.py"
        self.handler.write_text(HANDLER)
        self.file = folder / "site.yaml"
        self.file.write_text(FILE)
        self.answer = lake.run("up", str(self.file))

    def client(self, service: str) -> Any:
        url = self.answer["firehose" if service == "firehose" else "s3"]
        keys = self.lake.endpoints.keys
        return boto3.client(service, REGION, endpoint_url=url, aws_access_key_id=keys.user,
                            aws_secret_access_key=keys.password)  # fmt: skip

    def put(self, *records: bytes, stream: str = "site-clicks") -> None:
        answer = self.client("firehose").put_record_batch(
            DeliveryStreamName=stream, Records=[{"Data": record} for record in records]
        )
        assert answer["FailedPutCount"] == 0

    def send(self, *records: bytes) -> None:
        entries = [{"Data": record, "PartitionKey": "k"} for record in records]
        self.client("kinesis").put_records(StreamName="site-visits", Records=entries)

    def verified(self) -> dict[str, dict[str, Any]]:
        return {each["puts"]: each for each in self.lake.run("verify")["puts"]}

    def failures(self, kind: str) -> list[dict[str, Any]]:
        s3 = self.client("s3")
        listed = s3.list_objects_v2(Bucket="cdclake", Prefix=f"firehose/{kind}/")
        bodies = [
            s3.get_object(Bucket="cdclake", Key=entry["Key"])["Body"].read()
            for entry in listed.get("Contents", [])
        ]
        return [json.loads(line) for body in bodies for line in body.splitlines()]


@pytest.fixture(scope="module")
def puts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Puts]:
    folder = tmp_path_factory.mktemp("puts")
    with lake_in(folder) as lake:
        yield Puts(lake, folder)


def test_records_are_rows_of_exact_values_and_bad_ones_are_kept(puts: Puts) -> None:
    parts = {part["name"] for part in puts.lake.run("status")["components"]}
    assert parts == {"supervisor", "aws", "firehose"}
    bad = json.dumps({**CLICK, "price": 1.005}).encode()
    puts.put(json.dumps(CLICK).encode() + b"\n", b'{"id": 1}', bad)
    puts.send(b"1,/a", aggregated([("x", b"2,/b"), ("y", b"x,/c")]), b"4,/d")
    found = puts.verified()
    assert found["clicks"] == {
        "puts": "clicks", "rows": {"clicks": 2}, "acknowledged": 3, "waiting": 0, "failed": 1,
        "dropped": 0, "redriven": 0, "missing": 0, "last_error": found["clicks"]["last_error"],
    }  # fmt: skip
    kept = [base64.b64decode(each["rawData"]) for each in puts.failures("processing-failed")]
    assert sorted(kept) == sorted([bad, b"x,/c"])
    empty, full = puts.lake.sql(
        "select id, userid, price = 12345678.90, put_at = timestamptz '2026-11-22 19:00:00.5Z',"
        " local = timestamp '2026-11-22 19:00:00', day = date '2026-11-22', ok, ratio, small, body,"
        " arrived_at > timestamptz '2020-01-01 00:00:00Z' from clicks order by id"
    )
    assert empty == [1, *[None] * 9, True]
    assert full == [2**60, "\u00fc", True, True, True, True, True, 0.1, -5, '{"a":[1,null]}', True]
    assert puts.lake.sql("select * exclude arrived_at from visits order by id") == [
        [1, "/a"], [2, "/b"], [4, "/d"],
    ]  # fmt: skip


@pytest.mark.slow  # by default tests/unit/firehose/test_put_tables.py, without a lake
def test_a_field_of_a_record_selects_its_table(puts: Puts) -> None:
    puts.put(
        b'{"kind": "order", "id": 1}', b'{"kind": "viewed", "page": "/"}', b'{"kind": "sold"}',
        b'{"kind": "refund", "id": 2}', stream="site-events",
    )  # fmt: skip
    found = puts.verified()["events"]
    assert found["rows"] == {"bought": 2, "viewed": 1}
    assert (found["acknowledged"], found["failed"], found["missing"]) == (4, 1, 0)
    assert "ProcessingFailed" in found["last_error"]
    bought = puts.lake.sql("select id, kind from bought order by id")
    assert bought == [[1, "order"], [2, "refund"]]
    assert puts.lake.sql("select page from viewed") == [["/"]]
    logs = puts.lake.run("logs", "firehose")
    assert "kind: its value selects no table" in json.dumps(logs)


@pytest.mark.slow
def test_a_record_that_the_transform_drops_is_not_missing(puts: Puts) -> None:
    puts.put(b"1,/a", b"2,/health", b"x,/c", stream="site-orders")
    found = puts.verified()["orders"]
    assert (found["rows"], found["failed"], found["dropped"]) == ({"orders": 1}, 1, 1)
    assert (found["acknowledged"], found["missing"]) == (3, 0)


@pytest.mark.slow
def test_a_broken_transform_fails_its_records_with_its_message(puts: Puts) -> None:
    puts.handler.write_text("def handler(event, context):\n    raise ValueError('no such page')\n")
    puts.answer = puts.lake.run("up", str(puts.file))
    puts.send(b"9,/x")
    assert puts.verified()["visits"]["failed"] >= 1
    assert any(
        "no such page" in each["errorMessage"] for each in puts.failures("processing-failed")
    )
    puts.handler.write_text(HANDLER)
    puts.answer = puts.lake.run("up", str(puts.file))


@pytest.mark.slow
def test_a_redrive_puts_failed_records_again(puts: Puts) -> None:
    wider = FILE.replace('price: "numeric(10,2)"', 'price: "numeric(10,2)", late: int')
    puts.put(b'{"id": 77, "late": 1}')
    assert puts.verified()["clicks"]["failed"] == 2
    puts.file.write_text(wider)
    puts.answer = puts.lake.run("up", str(puts.file))
    told = puts.lake.run("redrive", "--dry-run")
    assert told["put_again"]["clicks"] == 2 and told["put_again"]["visits"] >= 1
    assert puts.lake.run("redrive") == {**told, "dry_run": False}
    found = puts.verified()
    assert found["clicks"]["failed"] == 1  # the price is still wrong
    assert (found["clicks"]["redriven"], found["clicks"]["missing"]) == (2, 0)
    assert found["visits"]["failed"] >= 1  # its handler refuses the record again
    assert puts.lake.sql("select late from clicks where id = 77") == [[1]]


@pytest.mark.slow
def test_a_column_is_added_and_a_type_is_not_changed(puts: Puts) -> None:
    file = puts.file.read_text()
    puts.file.write_text(file.replace("page: text}", "page: text, seconds: int}"))
    puts.answer = puts.lake.run("up", str(puts.file))
    assert puts.lake.sql("select count(*) from visits where seconds is null") != [[0]]
    changed = puts.folder / "changed.yaml"
    changed.write_text(file.replace("page: text}", "page: int}"))
    error = puts.lake.run("up", str(changed), expect=2)["error"]
    assert "the column page of visits is string" in error["message"]
    puts.answer = puts.lake.run("up", str(puts.file))


@pytest.mark.slow
def test_acknowledged_records_outlive_kills(puts: Puts) -> None:
    before = puts.verified()["clicks"]["rows"]["clicks"]
    puts.put(*(b'{"id": %d}' % number for number in range(100, 150)))
    os.kill(puts.lake.pid("firehose"), 9)
    puts.answer = puts.lake.run("up")
    assert puts.verified()["clicks"]["rows"]["clicks"] >= before + 50
    assert puts.lake.sql("select count(distinct id) from clicks where id >= 100 and id < 150") == [
        [50]
    ]
