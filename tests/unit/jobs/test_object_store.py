"""Control objects in S3."""

from __future__ import annotations

import boto3
import pytest
from moto import mock_aws

from cdclake.jobs.control import store


def test_delete_all_deletes_one_folder_in_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(store, "_KEYS_PER_REQUEST", 2)
    requests: list[str] = []
    with mock_aws():
        boto3.client("s3").create_bucket(Bucket="bucket-of-reports")
        control = store.ObjectStore("s3://bucket-of-reports/control")
        for name in ("reports/1.json", "reports/2.json", "reports/2.advance.json", "other/1.json"):
            control.write(name, {})
        control._s3.meta.events.register(
            "before-call.s3", lambda model, **_: requests.append(model.name)
        )
        control.delete_all("reports")
        control.delete_all("reports")
        assert [*control.names_from("")] == ["other/1.json"]
    assert requests[:-1] == ["ListObjectsV2", "DeleteObjects", "DeleteObjects", "ListObjectsV2"]
