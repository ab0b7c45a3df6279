"""A bucket for tests of erasures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from tests.unit.forget.bucket import BUCKET


@pytest.fixture
def s3() -> Iterator[Any]:
    """Yield a client of an S3 that has the bucket."""
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        yield client
