"""The settings of the throw-away connector on a real worker: what its log answers."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from cdclake import naming
from cdclake.check import Check
from cdclake.config.deployment import load_deployment
from cdclake.debezium import worker
from cdclake.deployed.connector_answers import connector_answers
from cdclake.deployed.connector_probe import probe_settings
from cdclake.local.components import connect
from cdclake.local.lake import stack
from cdclake.local.process.home import Home
from tests.source_tree import PROJECT

pytestmark = [pytest.mark.local, pytest.mark.timeout(300)]

REGION = "us-east-1"
ASKED = probe_settings(load_deployment(PROJECT / "pipelines/shop.yaml", "dev"), REGION)
SECRET = naming.login_secret("shop-dev")
POLICY = "connector.client.config.override.policy"


@pytest.fixture(params=["All", "None"])
def policy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def home(policy: str, tmp_path: Path) -> Iterator[Home]:
    """A worker with this policy on overrides."""
    found = Home(tmp_path / "home")
    found.create()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            connect,
            "properties",
            lambda settings: worker.properties({**settings, POLICY: policy}),
        )
        try:
            stack.bring_up(found, embedded_postgres=False)
            yield found
        finally:
            stack.purge(found)


def created(home: Home, settings: dict[str, str]) -> tuple[str, dict[str, Check]]:
    """Connect's refusal of the connector, and what it and the worker's log answer."""
    file, api = home.log(connect.NAME), stack.endpoints(home, embedded_postgres=False).connect
    log = file.read_text()
    before, start = len(log), log.index("Kafka Connect started")
    request = urllib.request.Request(
        f"{api.url}/connectors",
        headers={"Content-Type": "application/json", **api.headers},
        data=json.dumps({"name": "probe", "config": settings}).encode(),
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    reason = json.load(refused.value)["message"]
    log = file.read_text()
    told = f"{log[:start]}{log[before:]}\n{reason}"
    return reason, {check.name: check for check in connector_answers(told)}


def test_it_fails_at_the_database_once_everything_else_is_answered(home: Home, policy: str) -> None:
    unread = created(home, ASKED)[1]
    assert unread["connect secrets"].state == "failed"
    assert SECRET in unread["connect secrets"].detail
    endpoints = stack.endpoints(home, embedded_postgres=False)
    boto3.client(
        "secretsmanager",
        region_name=REGION,
        endpoint_url=endpoints.glue,
        aws_access_key_id=endpoints.keys.user,
        aws_secret_access_key=endpoints.keys.password,
    ).create_secret(Name=SECRET, SecretString=json.dumps({"username": "u", "password": "p"}))
    reason, answers = created(home, ASKED)
    assert "127.0.0.1:1 refused" in reason
    told = {name: check.state for name, check in answers.items()}
    overrides = "ok" if policy == "All" else "warning"
    assert told == {
        "connect java": "ok",
        "connect plugin": "ok",
        "connect secrets": "ok",
        "connect overrides": overrides,
    }
