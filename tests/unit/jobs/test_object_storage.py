"""Files at locations whose keys have characters that a URL would split."""

from __future__ import annotations

from pathlib import Path

import boto3
import pyarrow as pa
import pytest
from moto import mock_aws

from cdclake.jobs.iceberg.object_storage import ObjectStorage

KEYS = ["t/s=why?/f", "t/s=c#/f", "t/s=a;b/f;c", "t/s=a?b#c=%3F/f", "t/s=plain/f"]
CLIENT = {"region_name": "us-east-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}


def check_all(storage: ObjectStorage, home: str) -> None:
    """Write, list, read and delete a file at each key."""
    for number, key in enumerate(KEYS):
        storage.write(f"{home}/{key}", pa.py_buffer(b"%d" % number))
    assert sorted(storage.list(f"{home}/t")) == sorted(f"{home}/{key}" for key in KEYS)
    assert storage.list(f"{home}/t/s=why?") == [f"{home}/t/s=why?/f"]
    for number, key in enumerate(KEYS):
        assert storage.read(f"{home}/{key}").to_pybytes() == b"%d" % number
        with storage.open(f"{home}/{key}") as opened:
            assert opened.read() == b"%d" % number
        storage.delete(f"{home}/{key}")
        storage.delete(f"{home}/{key}")
        assert f"{home}/{key}" not in storage.list(f"{home}/t")
        with pytest.raises(FileNotFoundError):
            storage.open(f"{home}/{key}")
    assert storage.list(f"{home}/t") == []


@mock_aws
def test_keys_in_s3_are_no_urls() -> None:
    s3 = boto3.client("s3", **CLIENT)
    s3.create_bucket(Bucket="bucket-of-keys")
    check_all(ObjectStorage(CLIENT), "s3://bucket-of-keys")


def test_local_paths_are_no_urls(tmp_path: Path) -> None:
    check_all(ObjectStorage(), str(tmp_path))


@pytest.mark.parametrize("prefix", ["file:", "file://"])
def test_local_paths_may_have_a_scheme(tmp_path: Path, prefix: str) -> None:
    ObjectStorage().write(f"{prefix}{tmp_path}/a?b", pa.py_buffer(b"1"))
    assert (tmp_path / "a?b").read_bytes() == b"1"
