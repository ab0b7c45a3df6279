"""Keys of `cdclake forget --target aws` in S3: their deletion never hides the run's outcome."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError, ConnectionClosedError

from cdclake.deployed import erasure
from cdclake.errors import CdcError

DENIED = ClientError({"Error": {"Code": "AccessDenied", "Message": "denied"}}, "DeleteObject")
CLOSED = ConnectionClosedError(endpoint_url="https://s3")


class Job:
    """Job whose run ends as given."""

    name, control_uri, deployment = "forget_rows", "s3://state/control", None

    def __init__(self, outcome: dict[str, Any] | CdcError) -> None:
        self.outcome = outcome

    def run(self, *_: Any, **__: Any) -> dict[str, Any]:
        if isinstance(self.outcome, CdcError):
            raise self.outcome
        return self.outcome


def erase(job: Any) -> dict[str, Any]:
    table: Any = SimpleNamespace(name="people")
    return erasure.erase(job, table, [("a@example.org",)], timedelta(0))


@pytest.fixture(params=[DENIED, CLOSED], ids=["denied", "closed"])
def undeletable(request: pytest.FixtureRequest, aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket whose objects cannot be deleted."""
    del aws
    call: Any = BaseClient._make_api_call
    where = {"CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}}
    boto3.client("s3").create_bucket(Bucket="state", **where)
    monkeypatch.setattr(erasure, "places_of", lambda *_: [])

    def refuse(client: Any, name: str, given: dict[str, Any]) -> Any:
        if name == "DeleteObject":
            raise request.param
        return call(client, name, given)

    monkeypatch.setattr(BaseClient, "_make_api_call", refuse)


@pytest.mark.usefixtures("undeletable")
def test_erase_returns_its_report_if_the_keys_cannot_be_deleted() -> None:
    assert erase(Job({"ok": True, "remaining": []})) == {"ok": True, "remaining": []}


@pytest.mark.usefixtures("undeletable")
def test_erase_raises_its_own_error_if_the_keys_cannot_be_deleted() -> None:
    with pytest.raises(CdcError, match="could not follow"):
        erase(Job(CdcError("could not follow the run", "look at it")))
