"""The real converter with the local Glue registry gives the values of the JSON converter."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.glue.models import glue_backends

from cdclake.debezium.avro_converter import GlueRegistry, avro_settings
from cdclake.jobs.stream.avro_values import AvroValues, split_header, without_refusal
from cdclake.jobs.stream.schema_registry import GlueSchemas
from cdclake.local.aws.aws_server import DurableAws
from cdclake.local.aws.http_server import Server
from cdclake.plan import GLUE_REGISTRY, Plan
from tests.avro.converters import convert
from tests.avro.samples import TOPIC, event, optional
from tests.local.source_database import free_port

REGION = "us-east-1"


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The local Glue, for this process and those that it starts."""

    port = free_port()
    url = f"http://127.0.0.1:{port}"
    for name, value in {
        "AWS_ACCESS_KEY_ID": "one",
        "AWS_SECRET_ACCESS_KEY": "two",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": url,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    glue_backends[DEFAULT_ACCOUNT_ID][REGION].registries.clear()
    with Server(port, DurableAws(tmp_path / "aws")) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield url
        server.shutdown()


def settings(endpoint: str, compatibility: str = "BACKWARD") -> dict[str, str]:
    """The connector's settings of a plan with Avro."""
    plan = Plan(
        name="shop", source_database="shop", lake_database="lake", tables=(), format="avro",
        registry=GLUE_REGISTRY, compatibility=compatibility,
    )  # fmt: skip
    boto3.client("glue").create_registry(RegistryName="shop")
    exact = {"value.converter.replace.null.with.default": "false"}
    return exact | avro_settings(plan, GlueRegistry("shop", REGION, endpoint))


def test_each_value_is_that_of_json(endpoint: str) -> None:
    events = [event(), event(added=optional("int32", 1)), event(with_point=False), event()]
    written = convert(settings(endpoint), GLUE_REGISTRY, [(TOPIC, each) for each in events])
    assert len(written) == 4
    registry = AvroValues(GlueSchemas())
    for as_json, as_avro in written:
        assert as_avro[0] == 3
        [found] = registry.as_json([as_avro])
        # Jackson writes characters beyond the 16-bit plane as two escapes.
        assert found == as_json.replace(rb"\uD83D\uDE00", "\U0001f600".encode())
    identifiers = {split_header(as_avro)[0] for _, as_avro in written}
    assert len(identifiers) == 3  # one per schema, kept over the changes


def test_topics_of_the_pipeline_stay_json(endpoint: str) -> None:
    topic = "shop.cdclake.heartbeat"
    [(as_json, written)] = convert(settings(endpoint), GLUE_REGISTRY, [(topic, event())])
    assert written == as_json


def test_a_refused_schema_leaves_the_event_and_the_reason(endpoint: str) -> None:
    events = [(TOPIC, event()), (TOPIC, event(with_point=False))]
    first, second = convert(settings(endpoint, "DISABLED"), GLUE_REGISTRY, events)
    assert first[1][0] == 3
    assert b'"cdc_refused":{"reason":"SCHEMA_REFUSED: ' in second[1]
    assert without_refusal(second[1]) == second[0]


@pytest.mark.slow
def test_a_failed_version_is_refused_until_it_is_deleted(endpoint: str) -> None:
    """Glue keeps a version that failed its check, and no change of the mode repairs it."""
    own, added = settings(endpoint), (TOPIC, event(added=optional("int32", 1)))
    convert(own, GLUE_REGISTRY, [(TOPIC, event()), added])
    versions = glue_backends[DEFAULT_ACCOUNT_ID][REGION].registries["shop"].schemas[TOPIC]
    failed = list(versions.schema_versions.values())[-1]
    failed.schema_version_status = "FAILURE"  # moto checks nothing
    schema = {"RegistryName": "shop", "SchemaName": TOPIC}
    boto3.client("glue").update_schema(SchemaId=schema, Compatibility="NONE")
    [(as_json, refused)] = convert(own, GLUE_REGISTRY, [added])
    assert b"SCHEMA_REFUSED: Schema Found but status is FAILURE" in refused
    assert without_refusal(refused) == as_json
    del versions.schema_versions[failed.schema_version_id]  # as DeleteSchemaVersions does
    [(_, written)] = convert(own, GLUE_REGISTRY, [added])
    assert written[0] == 3


@pytest.mark.slow
def test_registries_survive_a_restart(tmp_path: Path, endpoint: str) -> None:
    [(_, written)] = convert(settings(endpoint), GLUE_REGISTRY, [(TOPIC, event())])
    identifier = split_header(written)[0]
    text = GlueSchemas().schema_text(identifier)
    glue_backends[DEFAULT_ACCOUNT_ID][REGION].registries.clear()
    again = DurableAws(tmp_path / "aws")
    assert GlueSchemas().schema_text(identifier) == text
    assert again.schemas is not None
    with pytest.raises(ClientError, match="already exists"):
        boto3.client("glue").create_registry(RegistryName="shop")
