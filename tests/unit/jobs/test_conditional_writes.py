"""Conditional writes of control objects, which depend on no version of botocore."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse

from cdclake.jobs.control.store import ObjectStore

EMPTY: Any = SimpleNamespace(stream=lambda: iter(()))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], dict[str, str]]]:
    """Parameters and condition headers of each put; nothing leaves this process."""
    found: list[tuple[dict[str, Any], dict[str, str]]] = []
    asked: list[dict[str, Any]] = []
    session = boto3.Session("key", "secret", region_name="eu-west-1")

    def answer(request: Any, **_: Any) -> AWSResponse:
        headers = {k: v.decode() for k, v in request.headers.items() if k.startswith("If-")}
        found.append((asked[-1], headers))
        return AWSResponse(request.url, 200, {"ETag": "1"}, EMPTY)

    session.events.register(
        "provide-client-params.s3.PutObject", lambda params, **_: asked.append(dict(params))
    )
    session.events.register("before-send.s3.PutObject", answer)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", session)
    return found


@pytest.mark.parametrize(
    ("etag", "header"), [(None, {"If-None-Match": "*"}), ('"7"', {"If-Match": '"7"'})]
)
def test_the_condition_is_a_header_and_no_parameter(sent, etag, header):
    ObjectStore("s3://state/control").write_if("lease.json", {"a": 1}, etag)
    [(parameters, headers)] = sent
    assert headers == header
    assert set(parameters) == {"Bucket", "Key", "Body"}
