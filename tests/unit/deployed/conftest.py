"""AWS as moto has it, in this process; without it every call fails for want of credentials."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import boto3
import pytest
from moto import mock_aws
from moto.moto_api import state_manager

from cdclake.extras import MODULES
from tests.recorded_requests.functions import check_call

if TYPE_CHECKING:
    from tests.unit.deployed.redriving import Stream


@pytest.fixture(scope="session")
def session() -> boto3.Session:
    """Reads the services' models once; moto would have each test read them anew."""
    made = boto3.Session("moto", "moto", region_name="eu-west-1")
    made.events.register("before-parameter-build", check_call)
    return made


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


@pytest.fixture
def without_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the extra `read`: a command that imports DuckDB's reader fails."""
    for package in MODULES["read"]:
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "cdclake.jobs.reader.duck", raising=False)


@pytest.fixture
def jobs_in_moto() -> Iterator[Any]:
    """The jobs in moto; the bucket of their control objects."""
    where = {"CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}}
    boto3.client("s3").create_bucket(Bucket="state", **where)
    for job in ("apply_changes", "operate", "probe", "stream_changes", "verify_tables"):
        boto3.client("glue").create_job(
            Name=f"shop-dev-{job}",
            Role="r",
            Command={"Name": "glueetl", "ScriptLocation": "s3://state/x.py"},
            DefaultArguments={"--control": "s3://state/control"},
        )
    yield boto3.client("s3")
    state_manager.unset_transition("glue::job_run")
