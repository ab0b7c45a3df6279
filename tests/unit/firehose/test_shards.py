"""Reading Kinesis, through moto: every record of every shard, from the checkpoints on."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cdclake.local.firehose.records import Record
from cdclake.local.firehose.shards import KinesisSource, begin_now
from tests.kpl import aggregated


@pytest.fixture
def kinesis(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    with mock_aws():
        client = boto3.client("kinesis", region_name="us-east-1")
        client.create_stream(StreamName="logs", ShardCount=3)
        yield client


def put(kinesis: Any, numbers: range) -> None:
    entries = [{"Data": b"%d" % n, "PartitionKey": str(n)} for n in numbers]
    kinesis.put_records(StreamName="logs", Records=entries)


def source_of(kinesis: Any, folder: Path) -> KinesisSource:
    return KinesisSource(kinesis, "logs", folder / "firehose" / "logs.json", lambda _: None)


def read(source: KinesisSource, most: int = 1000) -> list[Record]:
    found: list[Record] = []
    while records := source.read(most):
        found += records
    return found


def values(records: list[Record]) -> list[int]:
    return sorted(int(record.value or b"") for record in records)


def test_all_shards_are_read_in_their_orders(kinesis: Any, tmp_path: Path) -> None:
    put(kinesis, range(100))
    records = read(source_of(kinesis, tmp_path), most=10)
    assert values(records) == [*range(100)]
    assert {record.partition for record in records} == {0, 1, 2}
    assert all(record.key == (record.value or b"").decode() for record in records)
    for shard in range(3):
        offsets = [record.offset for record in records if record.partition == shard]
        assert offsets == sorted({*offsets})


def test_what_is_not_committed_is_read_again(kinesis: Any, tmp_path: Path) -> None:
    put(kinesis, range(100))
    first = source_of(kinesis, tmp_path)
    records = read(first)
    held = {record.partition: record for record in records if int(record.value or b"") < 60}
    first.commit({shard: record.offset for shard, record in held.items()})
    again = read(source_of(kinesis, tmp_path))
    assert again == [r for r in records if r.offset >= held[r.partition].offset]
    ends = {record.partition: record.offset + 1 for record in records}
    first.commit(ends)
    put(kinesis, range(100, 105))
    assert values(read(source_of(kinesis, tmp_path))) == [*range(100, 105)]
    assert values(read(first)) == [*range(100, 105)]


def test_aggregated_records_are_parts_of_one_sequence_number(kinesis: Any, tmp_path: Path) -> None:
    parts = [(f"k{n}", b"%d" % n) for n in range(3)]
    kinesis.put_record(StreamName="logs", Data=aggregated(parts), PartitionKey="a")
    source = source_of(kinesis, tmp_path)
    records = read(source)
    assert [(r.key, r.value, r.part) for r in records] == [
        (key, data, n) for n, (key, data) in enumerate(parts)
    ]
    [offset] = {record.offset for record in records}
    assert len({record.id for record in records}) == 3
    source.commit({records[0].partition: offset})  # one part of it is not delivered
    assert read(source_of(kinesis, tmp_path)) == records
    source.commit({records[0].partition: offset + 1})
    assert read(source_of(kinesis, tmp_path)) == []


def test_records_put_before_the_creation_are_not_read(kinesis: Any, tmp_path: Path) -> None:
    checkpoints = tmp_path / "firehose" / "logs.json"
    put(kinesis, range(100))
    time.sleep(0.002)  # Kinesis has the time of arrival in milliseconds
    begin_now(checkpoints)
    put(kinesis, range(100, 105))
    created = source_of(kinesis, tmp_path)
    records = read(created, most=10)
    assert values(records) == [*range(100, 105)]
    begin_now(checkpoints)  # a restart before anything was delivered
    assert read(source_of(kinesis, tmp_path)) == records
    ends = {record.partition: record.offset + 1 for record in records}
    created.commit(ends)
    put(kinesis, range(105, 110))
    begin_now(checkpoints)
    assert values(read(source_of(kinesis, tmp_path))) == [*range(105, 110)]
