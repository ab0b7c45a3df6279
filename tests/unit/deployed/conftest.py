"""AWS as moto has it, in this process; without it every call fails for want of credentials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from unittest.mock import patch

import boto3
import pytest
from moto import mock_aws

if TYPE_CHECKING:
    from tests.unit.deployed.redriving import Stream


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


@pytest.fixture
def stream() -> Stream:
    """What the redrive puts into; imported here, for the other tests need nothing of it."""
    from tests.unit.deployed.redriving import Stream

    return Stream()


@pytest.fixture
def redrive_deployed(aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bucket of a deployment whose failed records are redriven."""
    from tests.unit.deployed.redriving import set_up

    set_up(monkeypatch)
