"""Events as Avro in a deployment: the registry, the converter, and who may do what with schemas."""

from __future__ import annotations

import json

import pytest

from tests.synth.deployments import AVRO, EXISTING, Deploy, Synthesized
from tests.synth.permissions import allows, role_of
from tests.synth.rules.reading import listed, statements

WRITES = {
    "glue:CreateSchema",
    "glue:GetSchemaByDefinition",
    "glue:PutSchemaVersionMetadata",
    "glue:RegisterSchemaVersion",
}
READ = "glue:GetSchemaVersion"


def about_schemas(deployment: Synthesized) -> dict[str, set[str]]:
    """By the id of each policy, the actions on schemas that it allows."""
    found: dict[str, set[str]] = {}
    for template in deployment.templates.values():
        for name, resource in template["Resources"].items():
            if resource["Type"] not in ("AWS::IAM::Policy", "AWS::IAM::Role"):
                continue
            actions = {
                action
                for statement in statements(resource["Properties"])
                for action in listed(statement.get("Action", []))
                if "Schema" in action and action.startswith("glue:")
            }
            if actions:
                found[name] = actions
    return found


def test_the_connector_registers_and_the_stream_reads(variants: dict[str, Synthesized]) -> None:
    """So does `verify`, for the events that a rule withholds."""
    found = about_schemas(variants["governed"])
    assert sorted(map(len, found.values())) == [1, 1, 5]
    assert [a for n, a in found.items() if n.startswith("Connector")] == [WRITES | {READ}]
    assert [a for n, a in found.items() if n.startswith("StreamChanges")] == [{READ}]
    assert [a for n, a in found.items() if n.startswith("VerifyTables")] == [{READ}]


def test_schemas_are_read_by_a_uuid_alone(variants: dict[str, Synthesized]) -> None:
    """Glue then checks no registry: a right on one would not cover the request."""
    deployed = variants["governed"]
    for role in ("Connector", "StreamChanges", "VerifyTables"):
        found = role_of(deployed, role)
        assert allows(found, READ, "*"), role
        assert not allows(found, "glue:RegisterSchemaVersion", "*"), role


def test_the_connector_writes_to_the_registry_of_the_deployment(
    variants: dict[str, Synthesized],
) -> None:
    registry = variants["governed"].only("AWS::Glue::Registry")
    settings = variants["governed"].only("AWS::KafkaConnect::Connector")["ConnectorConfiguration"]
    assert settings["value.converter.registry.name"] == registry["Name"] == "shop"
    assert settings["value.converter.region"] == {"Ref": "AWS::Region"}
    assert "value.converter.endpoint" not in settings


@pytest.mark.parametrize(
    ("url", "port"),
    [("http://registry.example.org:8080", 8080), ("http://10.0.0.7", 80), ("https://r:8443", 8443)],
)
@pytest.mark.synth
def test_connector_and_jobs_may_reach_the_port_of_apicurio(
    deploy: Deploy, url: str, port: int
) -> None:
    registry = f"registry: {{apicurio: '{url}'}}"
    deployed = deploy(AVRO.replace("registry: glue", registry) + EXISTING)
    resources = deployed.templates["shop-network"]["Resources"]
    rules = [
        each["Properties"]
        for each in resources.values()
        if each["Type"] == "AWS::EC2::SecurityGroupEgress" and "CidrIp" in each["Properties"]
    ]
    assert {(r["CidrIp"], r["IpProtocol"], r["FromPort"], r["ToPort"]) for r in rules} == {
        ("0.0.0.0/0", "tcp", port, port)
    }
    groups = [rule["GroupId"]["Fn::GetAtt"][0] for rule in rules]
    described = sorted(resources[group]["Properties"]["GroupDescription"] for group in groups)
    assert described == ["shop-network: Glue jobs", "shop-network: MSK Connect"]


@pytest.mark.synth
def test_apicurio_with_https_needs_no_rule(deploy: Deploy) -> None:
    registry = "registry: {apicurio: 'https://registry.example.org'}"
    deployed = deploy(AVRO.replace("registry: glue", registry) + EXISTING)
    rules = deployed.resources("AWS::EC2::SecurityGroupEgress")
    assert not any("CidrIp" in rule["Properties"] for rule in rules)
    assert "RegistryOwner" in deployed.templates["shop-network"]["Outputs"]


def test_without_avro_there_is_no_registry(created: Synthesized) -> None:
    assert created.resources("AWS::Glue::Registry") == []
    assert about_schemas(created) == {}
    [connector] = created.resources("AWS::KafkaConnect::Connector")
    assert "TableConverter" not in json.dumps(connector)


def test_the_stream_installs_the_packages(created: Synthesized) -> None:
    [arguments] = [
        job["Properties"]["DefaultArguments"]
        for job in created.resources("AWS::Glue::Job")
        if job["Properties"]["Name"] == "shop-stream_changes"
    ]
    assert "gluewheels" in str(arguments["--additional-python-modules"])
