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
from tests.unit.deployed.stored_lake import PREFIX, add_table

if TYPE_CHECKING:
    from tests.unit.deployed.redriving import Stream


CONF = "spark.sql.catalog.lake.warehouse=s3://warehouse --conf a=b=c"


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


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A stream in moto with its control objects, and one table of a hundred rows."""
    s3, glue = boto3.client("s3"), boto3.client("glue")
    where = {"CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}}
    for bucket in ("state", "warehouse"):
        s3.create_bucket(Bucket=bucket, **where)
    glue.create_job(
        Name=f"{PREFIX}-stream_changes",
        Role="r",
        Command={"Name": "gluestreaming", "ScriptLocation": "s3://state/x.py"},
        DefaultArguments={"--control": "s3://state/control", "--conf": CONF},
    )
    glue.create_database(DatabaseInput={"Name": "cdc_iceberg"})
    add_table("orders", rows=120, deleted=20)
    add_table("orders_changes", rows=300, deleted=0)
    connectors = [
        {"connectorName": f"{PREFIX}-source", "connectorState": "RUNNING"},
        {"connectorName": f"{PREFIX}-source-2", "connectorState": "FAILED"},
    ]

    class Connect:
        """Moto has no MSK Connect; each page has one connector."""

        def get_paginator(self, name: str) -> Connect:
            assert name == "list_connectors"
            return self

        def paginate(self, **_: Any) -> list[dict[str, Any]]:
            return [{"connectors": [each]} for each in reversed(connectors)]

    client = boto3.client

    def made(name: str, **more: Any) -> Any:
        return Connect() if name == "kafkaconnect" else client(name, **more)

    monkeypatch.setattr(boto3, "client", made)
    # Moto ends a run at the first request for its state.
    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": 1_000_000})
    yield connectors
    state_manager.unset_transition("glue::job_run")
