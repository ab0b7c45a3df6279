"""AWS as moto has it, in this process; without it every call fails for want of credentials."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import boto3
import pytest
from moto import mock_aws


@pytest.fixture(scope="session")
def session() -> boto3.Session:
    """Reads the services' models once; moto would have each test read them anew."""
    return boto3.Session("moto", "moto", region_name="eu-west-1")


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch, session: boto3.Session) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "moto")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws(), patch.object(boto3, "DEFAULT_SESSION", session):
        yield
