"""Failed put records are put into their stream again: Firehose's API, Kinesis and S3 are real."""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from cdclake.config.resolve import load_plan
from cdclake.local.aws.http_server import Server
from cdclake.local.components.installed import REGION
from cdclake.local.firehose.direct_put import DirectPut
from cdclake.local.firehose.failed import failed_records, redriven_records
from cdclake.local.firehose.failures import ErrorPrefix, Kind
from cdclake.local.firehose.journal import Journal, JournalSource
from cdclake.local.firehose.records import Failure, Record
from cdclake.local.firehose.shards import KinesisSource
from cdclake.plan import Plan
from cdclake.redrive import batch_writer
from cdclake.redrive.batch_writer import PutRejected
from cdclake.redrive.pages import redrive_all
from cdclake.redrive.put_service import PutRedriveService
from tests.recorded_requests.functions import checked
from tests.unit.firehose.test_direct_put import client_of
from tests.unit.local.aws_process import KEY_ID, SECRET, AwsProcess

BUCKET = "state"
FILE = """\
version: 1
name: shop
puts:
  clicks: {columns: {id: int}}
  events: {route: kind, tables: {bought: {columns: {id: int}}, seen: {columns: {id: int}}}}
  shards: {source: kinesis, columns: {id: int}}
weblogs:
  request: {route: day}
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    file = tmp_path_factory.mktemp("plan") / "shop.yaml"
    file.write_text(FILE)
    return load_plan(file)


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """Clients of the local S3 and Kinesis."""
    server = AwsProcess(tmp_path_factory.mktemp("aws") / "aws").start()

    def client(service: str) -> Any:
        made = boto3.client(
            service, endpoint_url=server.url, region_name=REGION, aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
        )  # fmt: skip
        return checked(made)

    client("s3").create_bucket(Bucket=BUCKET)
    client("kinesis").create_stream(StreamName="shop-shards", ShardCount=2)
    yield client
    server.kill()


class Redriven:
    """A bucket with failed records, and the streams that they are put into."""

    def __init__(self, plan: Plan, aws: Callable[[str], Any], folder: Path, port: object) -> None:
        self.plan, self.s3, self.kinesis = plan, aws("s3"), aws("kinesis")
        self.journal, self.firehose = Journal(folder / "journal.db"), checked(client_of(port))
        self._folder = folder

    def fail(self, kind: Kind, stream: str, *raw: bytes) -> None:
        [declared] = [each for each in self.plan.put_streams if each.name == stream]
        record = Record(0, 7, 1_795_300_000_000, b"")
        ErrorPrefix(self.s3, BUCKET, declared, f"shop-{stream}").write(
            kind,
            [Failure(record=record, code="X", message="m", attempts=1, raw=each) for each in raw],
        )

    def keys(self) -> list[str]:
        listed = self.s3.list_objects_v2(Bucket=BUCKET)
        return [entry["Key"] for entry in listed.get("Contents", [])]

    def waiting(self) -> list[str]:
        return [key for key in self.keys() if "/redriven/" not in key]

    def clear(self) -> None:
        for key in self.keys():
            self.s3.delete_object(Bucket=BUCKET, Key=key)

    def accepted(self, stream: str) -> list[bytes]:
        return [
            each.value or b"" for each in JournalSource(self.journal, f"shop-{stream}").read(10_000)
        ]

    def sharded(self) -> list[bytes]:
        checkpoints = self._folder / "checkpoints.json"
        source = KinesisSource(self.kinesis, "shop-shards", checkpoints, lambda _: None)
        return sorted(record.value or b"" for record in source.read(10_000))

    def counted(self, stream: str) -> tuple[int, int]:
        """Count the stream's records that failed, and those that were put again."""
        [declared] = [each for each in self.plan.put_streams if each.name == stream]
        place = (self.s3, BUCKET, declared, f"shop-{stream}")
        failed = failed_records(*place)
        return failed.records if failed else 0, redriven_records(*place)

    def redrive(self, *, dry_run: bool = False, **how: Any) -> dict[str, Any]:
        clients = {"s3": self.s3, "firehose": self.firehose, "kinesis": self.kinesis, **how}
        service = PutRedriveService(self.plan, prefix="shop", bucket=BUCKET, **clients)
        return redrive_all(service.page, dry_run=dry_run)


@pytest.fixture
def redriven(plan: Plan, aws: Callable[[str], Any], tmp_path: Path) -> Iterator[Redriven]:
    journal = Journal(tmp_path / "journal.db")
    names = {f"shop-{stream.name}": stream for stream in plan.put_streams}
    with Server(0, DirectPut(names, journal)) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        made = Redriven(plan, aws, tmp_path, server.server_address[1])
        yield made
        made.clear()
        server.shutdown()


def test_records_are_put_into_the_stream_that_refused_them(redriven: Redriven) -> None:
    redriven.fail("processing-failed", "clicks", b'{"id": 1}\n', b"\x00\xff no JSON")
    redriven.fail("processing-failed", "events", b'{"kind": "seen", "id": 2}')
    redriven.fail("processing-failed", "shards", b'{"id": 3}', b'{"id": 4}')
    redriven.fail("processing-failed", "request", b'{"code": "200"}')
    objects = redriven.waiting()
    told = redriven.redrive(dry_run=True)
    assert redriven.waiting() == objects and redriven.accepted("clicks") == []
    assert redriven.redrive() == {**told, "dry_run": False}
    assert told["put_again"] == {"clicks": 2, "events": 1, "shards": 2, "request": 1}
    assert (told["ok"], told["objects"], told["kept"]) == (True, 4, {})
    assert redriven.accepted("clicks") == [b'{"id": 1}\n', b"\x00\xff no JSON"]
    assert redriven.accepted("events") == [b'{"kind": "seen", "id": 2}']
    assert redriven.accepted("request") == [b'{"code": "200"}']
    assert redriven.sharded() == [b'{"id": 3}', b'{"id": 4}']
    assert redriven.keys() == [key.replace("firehose/", "firehose/redriven/") for key in objects]
    assert redriven.redrive()["objects"] == 0


def test_rows_that_no_table_took_are_put_as_records_again(redriven: Redriven) -> None:
    redriven.fail("iceberg-failed", "clicks", b'{"id":1,"arrived_at":1000}', b'{"id":"x"}')
    redriven.fail("iceberg-failed", "shards", b'{"id":5,"arrived_at":1000}')
    [clicks, _] = redriven.waiting()
    told = redriven.redrive()
    assert (told["ok"], told["put_again"]) == (False, {"clicks": 1, "shards": 1})
    assert redriven.accepted("clicks") == [b'{"id":1}']
    assert b'{"id":5}' in redriven.sharded()
    assert told["kept"] == {f"s3://{BUCKET}/{clicks}-rest": 1}
    assert redriven.waiting() == [f"{clicks}-rest"]
    assert redriven.counted("clicks") == (1, 1) and redriven.counted("shards") == (0, 1)


def test_records_that_no_table_took_are_put_as_they_are(redriven: Redriven) -> None:
    """AWS does not document that Firehose keeps the function's rows there."""
    redriven.fail("iceberg-failed", "clicks", b'{"id": 6}\n', b'{"id":7,"arrived_at":1000}')
    redriven.fail("iceberg-failed", "events", b'{"kind": "seen", "id": 8}')
    told = redriven.redrive()
    assert (told["ok"], told["put_again"]) == (True, {"clicks": 2, "events": 1})
    assert redriven.accepted("clicks") == [b'{"id": 6}\n', b'{"id":7}']
    assert redriven.accepted("events") == [b'{"kind": "seen", "id": 8}']


def test_what_is_no_record_stays_and_ends_badly(redriven: Redriven) -> None:
    redriven.fail("iceberg-failed", "request", b'{"status":200,"arrived_at":1000}')
    redriven.fail("processing-failed", "clicks", b'{"id": 2}')
    [rows, key] = redriven.waiting()
    stored = redriven.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    zipped = gzip.compress(b"no line of Firehose\n" + stored)
    redriven.s3.put_object(Bucket=BUCKET, Key=key, Body=zipped)
    told = redriven.redrive()
    assert redriven.accepted("clicks") == [b'{"id": 2}']
    assert (told["ok"], told["put_again"]) == (False, {"clicks": 1, "request": 0})
    assert told["kept"] == {f"s3://{BUCKET}/{rows}": 1, f"s3://{BUCKET}/{key}-rest": 1}
    assert redriven.waiting() == [rows, f"{key}-rest"]
    assert redriven.redrive()["put_again"] == {"clicks": 0, "request": 0}
    assert redriven.waiting() == [rows, f"{key}-rest"]


def test_other_streams_and_later_failures_are_left_alone(redriven: Redriven) -> None:
    redriven.fail("processing-failed", "clicks", b'{"id": 1}')
    [key] = redriven.waiting()
    foreign = key.replace("shop-clicks", "shop-orders")
    redriven.s3.copy_object(Bucket=BUCKET, Key=foreign, CopySource={"Bucket": BUCKET, "Key": key})
    later = {"before": "2020-01-01T00:00:00+00:00"}
    service = PutRedriveService(
        redriven.plan, prefix="shop", bucket=BUCKET, s3=redriven.s3, firehose=redriven.firehose,
        kinesis=redriven.kinesis,
    )  # fmt: skip
    assert service.page(later)["objects"] == 0
    assert redriven.redrive()["objects"] == 1
    assert redriven.waiting() == [foreign]


class Crash(Exception):
    """The process is gone."""


def crashing(client: Any, left: list[int], *names: str) -> Any:
    """Return the client, which crashes before or after the nth write."""

    def counted(real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            for before in (True, False):
                left[0] -= 1
                if left[0] == 0:
                    raise Crash
                if before:
                    answer = real(*args, **kwargs)
            return answer

        return call

    for name in names:
        setattr(client, name, counted(getattr(client, name)))
    return client


def test_a_run_that_is_killed_repeats_at_most_one_object(
    redriven: Redriven, aws: Callable[[str], Any]
) -> None:
    port = int(redriven.firehose.meta.endpoint_url.rpartition(":")[2])
    repeated = set()
    for step in range(1, 19):  # three objects, of which each is put, copied and deleted
        redriven.clear()
        objects = [[b"%d %d %d" % (step, number, each) for each in range(3)] for number in range(3)]
        for records in objects:
            redriven.fail("processing-failed", "clicks", *records)
        left, before = [step], len(redriven.accepted("clicks"))
        with pytest.raises(Crash):
            redriven.redrive(
                s3=crashing(aws("s3"), left, "copy_object", "delete_object"),
                firehose=crashing(client_of(port), left, "put_record_batch"),
            )
        redriven.redrive()
        counted = Counter(redriven.accepted("clicks")[before:])
        assert counted.keys() == {record for records in objects for record in records}
        twice = {record for record, count in counted.items() if count > 1}
        assert max(counted.values()) <= 2 and (twice == set() or twice in map(set, objects)), step
        repeated.add(bool(twice))
        assert redriven.waiting() == []
    assert repeated == {True, False}


def test_an_object_whose_records_are_not_all_accepted_stays(
    redriven: Redriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    redriven.fail("processing-failed", "clicks", b"1", b"2")
    waiting, put = redriven.waiting(), redriven.firehose.put_record_batch

    def refuse_the_last(**given: Any) -> dict[str, Any]:
        answers = put(DeliveryStreamName="shop-clicks", Records=given["Records"][:-1])
        refused = {"ErrorCode": "ServiceUnavailableException", "ErrorMessage": "slow"}
        return {"RequestResponses": [*answers["RequestResponses"], refused]}

    with monkeypatch.context() as throttled:
        throttled.setattr(batch_writer, "PAUSES_S", ())
        throttled.setattr(redriven.firehose, "put_record_batch", refuse_the_last)
        with pytest.raises(PutRejected, match="did not accept 1 records"):
            redriven.redrive()
    assert redriven.waiting() == waiting
    redriven.redrive()
    assert redriven.accepted("clicks") == [b"1", b"1", b"2"]
    assert redriven.waiting() == []
