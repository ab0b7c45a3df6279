"""Settings of declared connectors, validated by a real worker that has loaded their plugins."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from confluent_kafka import Producer

from cdclake.config.resolve import load_plan
from cdclake.connectors.configuration import configure
from cdclake.connectors.iceberg_sink import SinkAddress
from cdclake.local.components.connect_plugins import declare_plugins
from cdclake.local.components.kafka import CLIENT_SETTINGS
from cdclake.local.lake import stack
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.topics import create_topics
from cdclake.local.process.home import Home
from cdclake.plan import Plan
from tests.local.recording_sink import plugin_zip

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(300)]

PIPELINE = """\
version: 1
name: shop
source: {{database: shop}}
tables:
  public.orders: {{key: [id], columns: {{id: bigint}}}}
connectors:
  lake: {{plugin: iceberg-sink, tables: [public.orders]}}
  recording:
    plugin: {archive}
    class: example.RecordingSink
    tables: [public.orders]
    settings: {{file: {archive}.out, file.password: "${{secretsmanager:shop/file:password}}"}}
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The built-in sink, and a connector whose plugin is a zip."""
    folder = tmp_path_factory.mktemp("pipeline")
    file = folder / "shop.yaml"
    file.write_text(PIPELINE.format(archive=plugin_zip(folder)))
    return load_plan(file)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, plan: Plan) -> Iterator[Home]:
    found = Home(tmp_path_factory.mktemp("lake") / "home")
    found.create()
    declare_plugins(found, plan.connectors)
    try:
        stack.bring_up(found, embedded_postgres=False)
        yield found
    finally:
        stack.purge(found)


def config_of(home: Home, plan: Plan, name: str) -> dict[str, str]:
    endpoints = stack.endpoints(home, embedded_postgres=False)
    [connector] = [each for each in plan.connectors if each.name == name]
    address = SinkAddress(
        warehouse="s3://cdclake/warehouse",
        region="us-east-1",
        endpoint=endpoints.glue,
        kafka={"bootstrap.servers": endpoints.kafka.address, **CLIENT_SETTINGS},
    )
    return configure(plan, connector, f"shop-{name}", address)


def validated(home: Home, config: dict[str, str]) -> list[str]:
    """The errors that the real worker finds."""
    connect = stack.endpoints(home, embedded_postgres=False).connect
    name = config["connector.class"].rpartition(".")[2]
    request = urllib.request.Request(
        f"{connect.url}/connector-plugins/{name}/config/validate",
        headers={"Content-Type": "application/json", **connect.headers},
        data=json.dumps({"name": "x", **config}).encode(),
        method="PUT",
    )
    with urllib.request.urlopen(request) as answer:
        found: dict[str, Any] = json.load(answer)
    return [error for each in found["configs"] for error in each["value"]["errors"]]


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_the_derived_settings_of_the_sink_are_valid(home: Home, plan: Plan) -> None:
    config = config_of(home, plan, "lake")
    assert validated(home, config) == []
    wrong = {**config, "iceberg.control.commit.interval-ms": "soon"}
    assert any("soon" in error for error in validated(home, wrong))


def test_the_plugin_of_a_zip_is_loaded(home: Home, plan: Plan) -> None:
    config = config_of(home, plan, "recording")
    assert validated(home, {**config, "file.password": "any"}) == []
    wrong = {**config, "file.password": "any", "fails": "perhaps"}
    assert any("perhaps" in error for error in validated(home, wrong))


def test_a_connector_runs_with_the_secret_that_its_reference_names(home: Home, plan: Plan) -> None:
    endpoints = stack.endpoints(home, embedded_postgres=False)
    create_topics(endpoints.kafka, plan)
    keys = endpoints.keys
    secrets = boto3.client(
        "secretsmanager",
        endpoint_url=endpoints.glue,
        region_name="us-east-1",
        aws_access_key_id=keys.user,
        aws_secret_access_key=keys.password,
    )
    secrets.create_secret(Name="shop/file", SecretString='{"password": "found-it"}')
    client = ConnectorClient(endpoints.connect, plan, name="shop-recording")
    assert client.state() == "missing"
    client.start(config_of(home, plan, "recording"))
    assert (client.state(), client.failure()) == ("running", None)
    producer = Producer(endpoints.kafka.settings)
    producer.produce("shop.public.orders", b'{"id": 1}')
    producer.flush()
    written = Path(plan.connectors[1].settings["file"])
    eventually(written.exists)
    assert written.read_text() == "found-it shop.public.orders\n"
    log = (home.logs / "connect.log").read_text()
    assert "found-it" not in log
    client.remove()
    eventually(lambda: client.state() == "missing")
