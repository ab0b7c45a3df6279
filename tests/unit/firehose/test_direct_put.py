"""Direct PUT over the wire: what is acknowledged is delivered, also after a kill; AWS's errors."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from cdclake.local.aws.http_server import Server
from cdclake.local.firehose.direct_put import MAX_RECORD_BYTES, DirectPut
from cdclake.local.firehose.fault_injection import FaultInjector
from cdclake.local.firehose.journal import Journal, JournalSource
from tests.recorded.firehose import stream_of
from tests.recorded.recording import Recording
from tests.source_tree import PROJECT

TABLE = Recording.load("changes").plan.table("plain")
PUT: dict[str, Any] = {"source": "direct_put", "topic": ""}
STREAMS = {
    "x-logs": stream_of(TABLE, name="logs", **PUT),
    "x-other": stream_of(TABLE, name="other", **PUT),
    "x-topic": stream_of(TABLE, name="topic"),
    "x-shards": stream_of(TABLE, name="shards", source="kinesis", topic="s"),
}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "firehose" / "journal.db")


@pytest.fixture
def firehose(journal: Journal) -> Iterator[Any]:
    with serving(DirectPut(STREAMS, journal)) as client:
        yield client


@contextmanager
def serving(api: DirectPut) -> Iterator[Any]:
    """A client of boto3 for the API on a free port."""
    with Server(0, api) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield client_of(server.server_address[1])
        server.shutdown()


def client_of(port: object) -> Any:
    return boto3.client(
        "firehose", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1",
        aws_access_key_id="any", aws_secret_access_key="key",
        config=Config(retries={"max_attempts": 0}),
    )  # fmt: skip


def records(*data: bytes) -> list[dict[str, bytes]]:
    return [{"Data": each} for each in data]


def values(journal: Journal, stream: str = "x-logs") -> list[bytes | None]:
    return [record.value for record in JournalSource(journal, stream).read(10_000)]


def test_what_is_put_is_read_in_its_order_by_its_stream_alone(
    firehose: Any, journal: Journal
) -> None:
    one = firehose.put_record(DeliveryStreamName="x-logs", Record={"Data": b"1\x00\xff"})
    batch = firehose.put_record_batch(DeliveryStreamName="x-logs", Records=records(b"2", b"3", b""))
    firehose.put_record(DeliveryStreamName="x-other", Record={"Data": b"o"})
    assert values(journal) == [b"1\x00\xff", b"2", b"3", b""]
    assert values(journal, "x-other") == [b"o"]
    assert batch["FailedPutCount"] == 0
    ids = [one["RecordId"], *(each["RecordId"] for each in batch["RequestResponses"])]
    assert len({*ids}) == 4


def test_what_is_delivered_is_forgotten_and_its_offsets_never_come_again(journal: Journal) -> None:
    journal.append("x-other", [b"o"])
    journal.append("x-logs", [b"1", b"2", b"3"])
    source = JournalSource(journal, "x-logs")
    first = source.read(2)
    assert [record.value for record in first] == [b"1", b"2"]
    assert [record.value for record in source.read(2)] == [b"3"]
    assert source.read(2) == []
    source.commit({0: first[1].offset})
    again = JournalSource(journal, "x-logs").read(10)
    assert [(r.offset, r.value) for r in again] == [(first[1].offset, b"2"), (4, b"3")]
    source.commit({0: again[-1].offset + 1})
    assert (journal.waiting("x-logs"), journal.waiting("x-other")) == (0, 1)
    [offset] = journal.append("x-logs", [b"4"])
    assert offset > again[-1].offset


def test_a_batch_is_read_in_parts_of_some_megabytes(journal: Journal) -> None:
    large = [bytes([number]) * MAX_RECORD_BYTES for number in range(40)]
    journal.append("x-logs", large)
    source = JournalSource(journal, "x-logs")
    parts = []
    while found := source.read(2_000):
        parts.append([record.value for record in found])
    assert [value for part in parts for value in part] == large
    assert max(map(len, parts)) <= 17


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("x-none", [b"1"], "ResourceNotFoundException"),
        ("x-topic", [b"1"], "InvalidArgumentException"),
        ("x-shards", [b"1"], "InvalidArgumentException"),
        ("x-logs", [b"1"] * 501, "ValidationException"),
        ("x-logs", [b"1", b"x" * (MAX_RECORD_BYTES + 1)], "ValidationException"),
        ("x-logs", [b"x" * MAX_RECORD_BYTES] * 5, "InvalidArgumentException"),
    ],
)
def test_what_aws_refuses_is_refused_as_a_whole(
    firehose: Any, journal: Journal, name: str, data: list[bytes], code: str
) -> None:
    with pytest.raises(ClientError) as refused:
        firehose.put_record_batch(DeliveryStreamName=name, Records=records(*data))
    assert refused.value.response["Error"]["Code"] == code
    assert refused.value.response["Error"]["Message"]
    assert journal.waiting("x-logs") == 0


def test_what_just_fits_is_taken(firehose: Any, journal: Journal) -> None:
    batch = [b"x" * MAX_RECORD_BYTES] * 4 + [b"1"] * 496
    answer = firehose.put_record_batch(DeliveryStreamName="x-logs", Records=records(*batch))
    assert (answer["FailedPutCount"], journal.waiting("x-logs")) == (0, 500)


def test_streams_are_listed_and_described(firehose: Any) -> None:
    listed = firehose.list_delivery_streams()
    assert listed["DeliveryStreamNames"] == sorted(STREAMS)
    assert not listed["HasMoreDeliveryStreams"]
    put = firehose.list_delivery_streams(DeliveryStreamType="DirectPut", Limit=1)
    assert (put["DeliveryStreamNames"], put["HasMoreDeliveryStreams"]) == (["x-logs"], True)
    described = firehose.describe_delivery_stream(DeliveryStreamName="x-topic")
    told = described["DeliveryStreamDescription"]
    assert (told["DeliveryStreamType"], told["DeliveryStreamStatus"]) == ("MSKAsSource", "ACTIVE")
    with pytest.raises(ClientError, match="UnknownOperation"):
        firehose.delete_delivery_stream(DeliveryStreamName="x-logs")


def test_with_trouble_a_producer_that_sends_again_what_was_refused_loses_nothing(
    journal: Journal,
) -> None:
    left, refused = [b"%d" % number for number in range(300)], 0
    with serving(DirectPut(STREAMS, journal, FaultInjector(1, ["fail"]))) as client:
        while left:
            answer = client.put_record_batch(DeliveryStreamName="x-logs", Records=records(*left))
            told = answer["RequestResponses"]
            left = [data for data, each in zip(left, told, strict=True) if "ErrorCode" in each]
            assert answer["FailedPutCount"] == len(left)
            refused += len(left)
        codes = set()
        for _ in range(20):
            try:
                client.put_record(DeliveryStreamName="x-other", Record={"Data": b"1"})
            except ClientError as error:
                codes.add(error.response["Error"]["Code"])
    assert refused and codes == {"ServiceUnavailableException"}
    found = [value for value in values(journal) if value is not None]
    assert sorted(map(int, found)) == [*range(300)]


SERVE = """
import sys
from pathlib import Path
from cdclake.local.aws.http_server import Server
from cdclake.local.firehose.direct_put import DirectPut
from cdclake.local.firehose.journal import Journal
from tests.unit.firehose.test_direct_put import STREAMS
with Server(0, DirectPut(STREAMS, Journal(Path(sys.argv[1])))) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""


def test_what_was_acknowledged_outlives_a_kill(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(file)], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    client = client_of(int(process.stdout.readline()))
    acknowledged: list[bytes] = []
    try:
        while True:
            batch = [b"%d" % (len(acknowledged) + number) for number in range(7)]
            client.put_record_batch(DeliveryStreamName="x-logs", Records=records(*batch))
            acknowledged += batch
            if len(acknowledged) == 7:  # the first batch
                threading.Timer(0.2, process.kill).start()
    except Exception:  # the end of the process, however the client reports it
        if not acknowledged:
            process.kill()
            raise
        process.wait()
    assert acknowledged
    kept = values(Journal(file))
    assert kept[: len(acknowledged)] == acknowledged
    assert len(kept) - len(acknowledged) in (0, 7)  # the last batch may be there, and only whole
