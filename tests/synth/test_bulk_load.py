"""The bulk load in a deployment: its job, what it is told, and what it may do."""

from __future__ import annotations

import json

from tests.synth.deployments import Synthesized, Template
from tests.synth.permissions import rendered, role_of
from tests.synth.test_permissions import (
    CLUSTER,
    EVERY_JOB,
    FILE,
    GROUP,
    HERE,
    HOLDS,
    LOGIN,
    OF_ANYBODY,
    OFFSETS,
    PROGRESS,
    READS,
    REPORTS,
    SALT,
    STATE,
    TABLE,
    TABLES,
    TOPIC,
    Call,
    asked,
)


def job(deployed: Synthesized) -> Template:
    found: list[Template] = [
        each["Properties"]
        for each in deployed.resources("AWS::Glue::Job")
        if each["Properties"]["Name"] == "shop-load_tables"
    ]
    [only] = found
    return only


def test_the_job_reads_as_the_connector_and_writes_its_record(
    variants: dict[str, Synthesized],
) -> None:
    arguments = job(variants["governed"])["DefaultArguments"]
    connector = variants["governed"].only("AWS::KafkaConnect::Connector")
    settings = connector["ConnectorConfiguration"]
    source = json.loads(rendered(arguments["--source"]))
    assert (source["user"], source["password"], source["sslmode"], source["sslfactory"]) == (
        settings["database.user"],
        settings["database.password"],
        settings["database.sslmode"],
        settings["database.sslfactory"],
    )
    assert ".pem" in rendered(arguments["--authorities"])
    assert arguments["--connector"] == connector["ConnectorName"]
    assert arguments["--slot"] == settings["slot.name"]
    assert arguments["--epoch"] == settings["transforms.epoch.static.value"]
    jars = rendered(arguments["--extra-jars"])
    assert "postgresql-" in jars and "cdclake-connect" in jars and "aws-msk-iam-auth" in jars


def test_the_job_may_load_and_write_the_connectors_record(
    variants: dict[str, Synthesized],
) -> None:
    role = role_of(variants["governed"], "LoadTables")
    own: list[Call] = [
        *EVERY_JOB,
        *TABLES,
        *HOLDS,
        REPORTS,
        GROUP,
        OFFSETS,
        ("s3:PutObject", PROGRESS),
        ("s3:PutObject", f"{STATE}/control/loads/1.json"),
        ("glue:CreateTable", TABLE),
        ("kafka-cluster:Connect", CLUSTER),
        ("kafka-cluster:WriteData", f"{TOPIC}/__cdclake-offsets.shop"),
        ("secretsmanager:GetSecretValue", LOGIN),
        ("secretsmanager:GetSecretValue", SALT),  # a column is hashed
        ("kms:Decrypt", f"arn:aws:kms:{HERE}:key/own",
         {"ViaService": "secretsmanager.eu-west-1.amazonaws.com"}),
        ("s3:GetObject", FILE),
    ]  # fmt: skip
    assert [call for call in own if not asked(role, call)] == []
    others = [call for call in OF_ANYBODY if call not in (*own, *READS)]
    assert [call for call in others if asked(role, call)] == []


def test_without_a_bulk_load_there_is_no_job(created: Synthesized) -> None:
    names = [each["Properties"]["Name"] for each in created.resources("AWS::Glue::Job")]
    assert "shop-load_tables" not in names
