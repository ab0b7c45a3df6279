"""S3 and Glue over the wire, killed and started again: what was acknowledged is there."""

import base64
import hashlib
import os
import sqlite3
import time
import urllib.request
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError, ConnectionClosedError

from tests.unit.local.aws_process import KEY_ID, SECRET, AwsProcess

BUCKET = "lake"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AwsProcess]:
    running = AwsProcess(tmp_path / "aws").start()
    yield running
    running.kill()


def signed_request(
    url: str, data: bytes, payload: str, headers: dict[str, str]
) -> urllib.request.Request:
    """A PUT whose signature covers this word in place of the payload's hash."""
    made = AWSRequest("PUT", url, headers, data)
    signer = S3SigV4Auth(Credentials(KEY_ID, SECRET), "s3", "eu-central-1")
    with patch.object(signer, "payload", lambda _: payload):
        signer.add_auth(made)
    return urllib.request.Request(url, data, dict(made.headers), method="PUT")


@pytest.fixture
def s3(server: AwsProcess) -> Any:
    client = server.client("s3")
    client.create_bucket(
        Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
    )
    return client


def error_code(caught: pytest.ExceptionInfo[ClientError]) -> str:
    return str(caught.value.response["Error"]["Code"])


def test_objects_survive_a_kill(server: AwsProcess, s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="a b/ü+.txt", Body=b"one", Metadata={"k": "v"})
    s3.put_object(Bucket=BUCKET, Key="twice", Body=b"old")
    s3.put_object(Bucket=BUCKET, Key="twice", Body=b"new", ContentType="text/plain")
    s3.put_object(Bucket=BUCKET, Key="gone", Body=b"x")
    s3.delete_object(Bucket=BUCKET, Key="gone")
    before = s3.head_object(Bucket=BUCKET, Key="twice")
    server.kill()
    server.start()
    after = s3.head_object(Bucket=BUCKET, Key="twice")
    same = ("ETag", "LastModified", "ContentLength", "ContentType")
    assert {key: after[key] for key in same} == {key: before[key] for key in same}
    assert s3.get_object(Bucket=BUCKET, Key="a b/ü+.txt")["Body"].read() == b"one"
    assert s3.head_object(Bucket=BUCKET, Key="a b/ü+.txt")["Metadata"] == {"k": "v"}
    listed = s3.list_objects_v2(Bucket=BUCKET)["Contents"]
    assert [entry["Key"] for entry in listed] == ["a b/ü+.txt", "twice"]
    files = [file for file in (server.folder / "objects").glob("*/*") if file.is_file()]
    assert len(files) == 2, "the overwritten and the deleted object's files are gone"


@pytest.mark.slow
def test_killed_while_writing_keeps_all_that_was_acknowledged(server: AwsProcess, s3: Any) -> None:
    acknowledged: list[int] = []

    def write(worker: int) -> None:
        own = server.client("s3")
        for number in range(worker, 100_000, 4):
            try:
                own.put_object(Bucket=BUCKET, Key=f"n/{number}", Body=str(number).encode() * 500)
            except Exception:  # the server was killed, which ends the test's writing
                return
            acknowledged.append(number)

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, worker) for worker in range(4)]
        while len(acknowledged) <= 50 and not any(writer.done() for writer in writers):
            time.sleep(0.01)
        server.kill()
    assert len(acknowledged) > 50
    server.start()
    for number in acknowledged:
        body = s3.get_object(Bucket=BUCKET, Key=f"n/{number}")["Body"].read()
        assert body == str(number).encode() * 500


def test_conditional_puts_have_one_winner(server: AwsProcess, s3: Any) -> None:
    def create(number: int) -> str:
        try:
            server.client("s3").put_object(
                Bucket=BUCKET, Key="once", Body=b"%d" % number, IfNoneMatch="*"
            )
        except ClientError as err:
            return str(err.response["ResponseMetadata"]["HTTPStatusCode"])
        return "won"

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(create, range(8)))
    assert sorted(outcomes) == ["412"] * 7 + ["won"]
    etag = s3.head_object(Bucket=BUCKET, Key="once")["ETag"]
    s3.put_object(Bucket=BUCKET, Key="once", Body=b"next", IfMatch=etag)
    with pytest.raises(ClientError) as caught:
        s3.put_object(Bucket=BUCKET, Key="once", Body=b"stale", IfMatch=etag)
    assert error_code(caught) == "PreconditionFailed"


@pytest.mark.parametrize("size", [0, 10, 1 << 20, 3 << 20], ids=lambda n: f"{n} bytes")
def test_ranges(s3: Any, size: int) -> None:
    content = os.urandom(size)
    s3.put_object(Bucket=BUCKET, Key="r", Body=content)
    assert s3.get_object(Bucket=BUCKET, Key="r")["Body"].read() == content
    if size == 0:
        return
    for asked, expected in (
        ("bytes=0-3", content[:4]),
        ("bytes=4-", content[4:]),
        ("bytes=-5", content[-5:]),
        (f"bytes={size - 2}-{size + 100}", content[-2:]),
    ):
        got = s3.get_object(Bucket=BUCKET, Key="r", Range=asked)
        assert got["ResponseMetadata"]["HTTPStatusCode"] == 206
        assert got["Body"].read() == expected
    with pytest.raises(ClientError) as caught:
        s3.get_object(Bucket=BUCKET, Key="r", Range=f"bytes={size}-")
    assert error_code(caught) == "InvalidRange"


def test_a_folder_of_deleted_objects_is_none_of_a_bucket_with_versions(s3: Any) -> None:
    """Spark's file system would go on to see a folder that it has removed."""
    enabled = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration=enabled)
    for key in ("c/gone/offsets/0", "c/kept/0"):
        s3.put_object(Bucket=BUCKET, Key=key, Body=b"v1")
    s3.delete_object(Bucket=BUCKET, Key="c/gone/offsets/0")
    for prefix, folders in (("c/", ["c/kept/"]), ("c/gone/", []), ("", ["c/"])):
        found = s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix, Delimiter="/")
        assert [each["Prefix"] for each in found.get("CommonPrefixes", [])] == folders


def test_multipart_copy_and_bulk_delete(server: AwsProcess, s3: Any) -> None:
    parts = [os.urandom(5 << 20), os.urandom(1000)]
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="big")["UploadId"]
    done = [
        {
            "PartNumber": number,
            "ETag": s3.upload_part(
                Bucket=BUCKET, Key="big", UploadId=upload, PartNumber=number, Body=part
            )["ETag"],
        }
        for number, part in enumerate(parts, 1)
    ]
    s3.complete_multipart_upload(
        Bucket=BUCKET, Key="big", UploadId=upload, MultipartUpload={"Parts": done}
    )
    s3.copy_object(Bucket=BUCKET, Key="copy", CopySource={"Bucket": BUCKET, "Key": "big"})
    s3.delete_object(Bucket=BUCKET, Key="big")
    server.kill()
    server.start()
    assert s3.get_object(Bucket=BUCKET, Key="copy")["Body"].read() == b"".join(parts)
    s3.put_object(Bucket=BUCKET, Key="other", Body=b"")
    answer = s3.delete_objects(
        Bucket=BUCKET, Delete={"Objects": [{"Key": "copy"}, {"Key": "other"}, {"Key": "never"}]}
    )
    assert "Errors" not in answer
    assert s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0
    s3.delete_bucket(Bucket=BUCKET)
    server.kill()
    server.start()
    assert s3.list_buckets()["Buckets"] == []


@pytest.mark.parametrize("signed", [True, False], ids=["signed chunks", "unsigned with trailer"])
def test_streamed_upload_of_the_java_sdk(server: AwsProcess, s3: Any, signed: bool) -> None:
    content = os.urandom(150_000)
    checksum = base64.b64encode(zlib.crc32(content).to_bytes(4, "big")).decode()
    extension = ";chunk-signature=" + "0" * 64 if signed else ""
    framed = b"".join(
        f"{len(chunk):x}{extension}\r\n".encode() + chunk + b"\r\n"
        for chunk in (content[:65536], content[65536:131072], content[131072:])
    )
    framed += f"0{extension}\r\nx-amz-checksum-crc32:{checksum}\r\n\r\n".encode()
    kind = "AWS4-HMAC-SHA256-PAYLOAD-TRAILER" if signed else "UNSIGNED-PAYLOAD-TRAILER"
    kind = f"STREAMING-{kind}"
    request = signed_request(
        f"{server.url}/{BUCKET}/streamed",
        data=framed,
        payload=kind,
        headers={
            "Content-Type": "application/octet-stream",
            "Content-Encoding": "aws-chunked",
            "X-Amz-Decoded-Content-Length": str(len(content)),
            "X-Amz-Trailer": "x-amz-checksum-crc32",
            "X-Amz-Sdk-Checksum-Algorithm": "CRC32",
        },
    )
    with urllib.request.urlopen(request) as response:
        assert response.status == 200
    server.kill()
    server.start()
    got = s3.get_object(Bucket=BUCKET, Key="streamed", ChecksumMode="ENABLED")
    assert got["Body"].read() == content  # boto3 checks the checksum as it reads
    assert got["ChecksumCRC32"] == checksum
    assert got["ETag"] == f'"{hashlib.md5(content).hexdigest()}"'
    assert "ContentEncoding" not in got


def table_input(location: str) -> dict[str, Any]:
    return {
        "Name": "customers",
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"table_type": "ICEBERG", "metadata_location": location},
    }


def test_glue_survives_a_kill_and_refuses_a_stale_version(server: AwsProcess) -> None:
    glue = server.client("glue")
    glue.create_database(DatabaseInput={"Name": "shop", "Description": "d"})
    glue.create_database(DatabaseInput={"Name": "gone"})
    glue.delete_database(Name="gone")
    glue.create_table(DatabaseName="shop", TableInput=table_input("v0"))
    seen = glue.get_table(DatabaseName="shop", Name="customers")["Table"]["VersionId"]
    glue.update_table(
        DatabaseName="shop", TableInput=table_input("v1"), VersionId=seen, SkipArchive=True
    )
    server.kill()
    server.start()
    with pytest.raises(ClientError) as caught:
        glue.update_table(DatabaseName="shop", TableInput=table_input("v2"), VersionId=seen)
    assert error_code(caught) == "ConcurrentModificationException"
    table = glue.get_table(DatabaseName="shop", Name="customers")["Table"]
    assert table["Parameters"]["metadata_location"] == "v1"
    assert table["VersionId"] != seen
    assert [d["Name"] for d in glue.get_databases()["DatabaseList"]] == ["shop"]
    assert [t["Name"] for t in glue.get_tables(DatabaseName="shop")["TableList"]] == ["customers"]
    glue.delete_table(DatabaseName="shop", Name="customers")
    server.kill()
    server.start()
    with pytest.raises(ClientError) as caught:
        glue.get_table(DatabaseName="shop", Name="customers")
    assert error_code(caught) == "EntityNotFoundException"


def refuse_writes(server: AwsProcess, table: str) -> None:
    """Have SQLite fail to write the table, as on a full disk."""
    fails = "begin select raise(fail, 'database or disk is full'); end"
    with closing(sqlite3.connect(server.folder / "index.db")) as index:
        for what in ("insert", "delete"):
            index.execute(f"create trigger no_{what} before {what} on {table} {fails}")


def test_a_change_that_cannot_be_stored_is_never_served(server: AwsProcess, s3: Any) -> None:
    glue = server.client("glue")
    glue.create_database(DatabaseInput={"Name": "shop"})
    glue.create_table(DatabaseName="shop", TableInput=table_input("v1"))
    s3.put_object(Bucket=BUCKET, Key="k", Body=b"stored")
    server.kill()
    with Path("/dev/full").open("wb") as full:  # the disk of its log is full, too
        server.start(full.fileno())
    for table, change in (
        (
            "glue_table",
            partial(glue.update_table, DatabaseName="shop", TableInput=table_input("v2")),
        ),
        ("object", partial(s3.put_object, Bucket=BUCKET, Key="k", Body=b"not stored")),
    ):
        refuse_writes(server, table)
        with pytest.raises(ConnectionClosedError):
            change()
        assert server.process is not None and server.process.wait(10) == 1
        with closing(sqlite3.connect(server.folder / "index.db")) as index:
            index.executescript("drop trigger no_insert; drop trigger no_delete")
        server.start()
        kept = glue.get_table(DatabaseName="shop", Name="customers")["Table"]
        assert kept["Parameters"]["metadata_location"] == "v1"
        assert s3.get_object(Bucket=BUCKET, Key="k")["Body"].read() == b"stored"


def test_secrets_survive_a_kill_with_their_newest_value(server: AwsProcess) -> None:
    secrets = server.client("secretsmanager")
    for name in ("shop/source", "shop/other"):
        secrets.create_secret(Name=name, SecretString='{"password": "first"}')
    secrets.put_secret_value(SecretId="shop/source", SecretString='{"password": "second"}')
    secrets.delete_secret(SecretId="shop/other", ForceDeleteWithoutRecovery=True)
    server.kill()
    secrets = server.start().client("secretsmanager")
    assert secrets.get_secret_value(SecretId="shop/source")["SecretString"].endswith('"second"}')
    with pytest.raises(ClientError) as caught:
        secrets.get_secret_value(SecretId="shop/other")
    assert error_code(caught) == "ResourceNotFoundException"


def test_racing_glue_updates_lose_no_commit(server: AwsProcess) -> None:
    glue = server.client("glue")
    glue.create_database(DatabaseInput={"Name": "shop"})
    glue.create_table(DatabaseName="shop", TableInput=table_input("0"))

    def add_twenty(_worker: int) -> None:
        own = server.client("glue")
        for _ in range(20):
            while True:
                table = own.get_table(DatabaseName="shop", Name="customers")["Table"]
                count = int(table["Parameters"]["metadata_location"])
                try:
                    own.update_table(
                        DatabaseName="shop",
                        TableInput=table_input(str(count + 1)),
                        VersionId=table["VersionId"],
                    )
                    break
                except ClientError as err:
                    assert err.response["Error"]["Code"] == "ConcurrentModificationException"

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add_twenty, range(4)))
    table = glue.get_table(DatabaseName="shop", Name="customers")["Table"]
    assert table["Parameters"]["metadata_location"] == "80"


def records_of(kinesis: Any, after: dict[str, str] | None = None) -> dict[str, list[Any]]:
    """By shard, of the stream `logs`: from its beginning, or after these sequence numbers."""
    found = {}
    for shard in kinesis.list_shards(StreamName="logs")["Shards"]:
        name = shard["ShardId"]
        last = (after or {}).get(name)
        start = (
            {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": last}
            if last
            else {"ShardIteratorType": "TRIM_HORIZON"}
        )
        iterator = kinesis.get_shard_iterator(StreamName="logs", ShardId=name, **start)
        found[name] = kinesis.get_records(ShardIterator=iterator["ShardIterator"])["Records"]
    return found


@pytest.mark.slow
def test_kinesis_survives_a_kill_and_goes_on_counting(server: AwsProcess) -> None:
    kinesis = server.client("kinesis")
    for name in ("logs", "gone"):
        kinesis.create_stream(StreamName=name, ShardCount=2)
    kinesis.put_record(StreamName="gone", Data=b"0", PartitionKey="a")
    kinesis.delete_stream(StreamName="gone")
    entries = [{"Data": b"\x00%d" % n, "PartitionKey": str(n)} for n in range(20)]
    kinesis.put_records(StreamName="logs", Records=entries)
    kinesis.put_record(StreamName="logs", Data=b"last", PartitionKey="3")
    before = records_of(kinesis)
    assert sum(map(len, before.values())) == 21 and all(before.values())
    server.kill()
    kinesis = server.start().client("kinesis")
    assert kinesis.list_streams()["StreamNames"] == ["logs"]
    assert records_of(kinesis) == before
    told = kinesis.put_record(StreamName="logs", Data=b"more", PartitionKey="3")
    ends = {shard: records[-1]["SequenceNumber"] for shard, records in before.items()}
    assert int(told["SequenceNumber"]) > int(ends[told["ShardId"]])
    server.kill()
    kinesis = server.start().client("kinesis")
    after = records_of(kinesis, ends)
    assert [r["Data"] for records in after.values() for r in records] == [b"more"]


def test_what_kinesis_would_not_keep_is_refused(server: AwsProcess) -> None:
    kinesis = server.client("kinesis")
    kinesis.create_stream(StreamName="logs", ShardCount=1)
    with pytest.raises(ClientError, match="501"):
        kinesis.update_shard_count(
            StreamName="logs", TargetShardCount=2, ScalingType="UNIFORM_SCALING"
        )


def test_old_records_of_kinesis_go_but_for_the_last_of_a_shard(server: AwsProcess) -> None:
    kinesis = server.client("kinesis")
    kinesis.create_stream(StreamName="logs", ShardCount=1)
    for data in (b"1", b"2", b"3"):
        kinesis.put_record(StreamName="logs", Data=data, PartitionKey="a")
    server.kill()
    with sqlite3.connect(server.folder / "index.db") as index:
        index.execute("update kinesis_record set created = created - 8 * 86400")
    kinesis = server.start().client("kinesis")
    [kept] = records_of(kinesis).values()
    assert [record["Data"] for record in kept] == [b"3"]
    told = kinesis.put_record(StreamName="logs", Data=b"4", PartitionKey="a")
    assert int(told["SequenceNumber"]) > int(kept[0]["SequenceNumber"])
