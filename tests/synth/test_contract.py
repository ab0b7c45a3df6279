"""Every resource's properties fit CloudFormation's schemas, and the call that creates it."""

from __future__ import annotations

import base64
import copy
import json
import re
import subprocess
from typing import Any

import pytest

from cdclake import naming
from cdclake.config.deployment import load_deployment
from cdclake.debezium.topics import OFFSETS_SETTINGS, TOPIC_SETTINGS, durable_settings
from tests.synth.api_calls import CALLS, mismatches
from tests.synth.deployments import EXISTING, OPTIMIZED, PIPELINE, PROJECT, VARIANTS, Synthesized
from tests.synth.exports import imports

OPTIMIZER, SCHEDULE = "AWS::Glue::TableOptimizer", "AWS::Scheduler::Schedule"
LINT = PROJECT / ".venv" / "bin" / "cfn-lint"


@pytest.mark.synth
def test_cfn_lint_finds_nothing(variants):
    templates = [
        str(file)
        for variant in variants.values()
        for file in variant.folder.glob("*.template.json")
    ]
    # Glue maintains a table of three of them, Firehose delivers to another, one has connectors; two
    # have web logs alone, one has three streams of put tables alone.
    assert len(templates) == 11 * (len(VARIANTS) - 3) + 5 + 2 * 7 + 9
    linted = subprocess.run([str(LINT), *templates], capture_output=True, text=True, check=False)
    assert (linted.returncode, linted.stdout) == (0, "")


@pytest.mark.synth
def test_cfn_lint_would_find_something(created, tmp_path):
    template = copy.deepcopy(created.templates["shop-streaming"])
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::MSK::Cluster":
            resource["Properties"]["EncryptionInfo"]["EncryptionInTransit"]["ClientBroker"] = "SSL"
    file = tmp_path / "faulty.json"
    file.write_text(json.dumps(template))
    linted = subprocess.run([str(LINT), str(file)], capture_output=True, text=True, check=False)
    assert "'SSL' is not one of" in linted.stdout


@pytest.mark.parametrize("name", VARIANTS)
def test_every_resource_fits_the_call_that_creates_it(variants, name):
    found = [
        f"{stack}/{logical}: {what}"
        for stack, template in variants[name].templates.items()
        for logical, resource in template["Resources"].items()
        for what in mismatches(resource["Type"], resource.get("Properties", {}))
    ]
    assert not found, "\n".join(found)


def test_every_call_is_of_a_resource_that_we_create(variants):
    kinds = {
        resource["Type"]
        for variant in variants.values()
        for template in variant.templates.values()
        for resource in template["Resources"].values()
    }
    assert set(CALLS) == {kind for kind in kinds if not kind.startswith("Custom::")}


FAULTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "unknown property": ("AWS::MSK::Cluster", {"Brokers": 3}, "Brokers is not known"),
    "no version": ("AWS::MSK::Cluster", {"KafkaVersion": None}, "KafkaVersion"),
    "monitoring": ("AWS::MSK::Cluster", {"EnhancedMonitoring": "ALL"}, "cannot be 'ALL'"),
    "a list for a text": ("AWS::RDS::DBInstance", {"Engine": ["postgres"]}, "Engine"),
    "a text for a number": ("AWS::RDS::DBInstance", {"Port": "usual"}, "Port"),
    "no partitions": ("AWS::MSK::Topic", {"PartitionCount": 0}, "PartitionCount"),
    "kind of endpoint": (
        "AWS::EC2::VPCEndpoint", {"VpcEndpointType": "Private"}, "cannot be 'Private'",
    ),
    "size of the worker": (
        "AWS::KafkaConnect::Connector",
        {"Capacity": {"ProvisionedCapacity": {"McuCount": "one", "WorkerCount": 1}}},
        "mcuCount",
    ),
    "kind of plugin": (
        "AWS::KafkaConnect::CustomPlugin", {"ContentType": "TAR"}, "cannot be 'TAR'",
    ),
    "no settings of the worker": (
        "AWS::KafkaConnect::WorkerConfiguration",
        {"PropertiesFileContent": None},
        "propertiesFileContent",
    ),
    "no description": ("AWS::EC2::SecurityGroup", {"GroupDescription": None}, "Description"),
    "traffic": ("AWS::EC2::FlowLog", {"TrafficType": "REFUSED"}, "cannot be 'REFUSED'"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_noticed(created, name):
    kind, edits, expected = FAULTS[name]
    properties = copy.deepcopy(created.resources(kind)[0]["Properties"])
    assert mismatches(kind, properties) == []
    for key, value in edits.items():
        if value is None:
            del properties[key]
        else:
            properties[key] = value
    assert expected in "\n".join(mismatches(kind, properties))


def test_rds_runs_the_major_version_that_the_local_lake_does(created):
    [major] = re.findall(
        r"<postgres.version>([0-9]+)[.][0-9.]+</postgres.version>",
        (PROJECT / "pom.xml").read_text(),
    )
    assert created.only("AWS::RDS::DBInstance")["EngineVersion"] == major
    assert created.only("AWS::RDS::DBParameterGroup")["Family"] == f"postgres{major}"


def test_glue_is_told_the_zone_of_the_subnet_in_which_jobs_run(variants):
    def place(name: str) -> dict[str, Any]:
        connection = variants[name].only("AWS::Glue::Connection")["ConnectionInput"]
        return dict(connection["PhysicalConnectionRequirements"])

    zone = {"Fn::Join": ["", [{"Ref": "AWS::Region"}, "a"]]}
    assert place("created")["AvailabilityZone"] == zone
    subnets = variants["created"].resources("AWS::EC2::Subnet")
    assert subnets[0]["Properties"]["AvailabilityZone"] == zone
    assert place("existing")["AvailabilityZone"]["Fn::GetAtt"][1] == "AvailabilityZone"
    asked = variants["existing"].only("Custom::CdclakeZone")
    assert asked["SubnetId"] == place("existing")["SubnetId"] == "subnet-0a1b2c3d"


def topic_settings(deployed: Synthesized) -> dict[str, dict[str, str]]:
    properties = [each["Properties"] for each in deployed.resources("AWS::MSK::Topic")]
    return {each["TopicName"]: json.loads(base64.b64decode(each["Configs"])) for each in properties}


def test_a_topic_is_made_as_it_is_locally(created):
    plan = load_deployment(PROJECT / "pipelines" / "shop.yaml").plan
    settings, durable = topic_settings(created), durable_settings(3)
    assert settings.pop(naming.offsets_topic("shop")) == OFFSETS_SETTINGS | durable
    assert {*plan.own_topics.values(), "shop.public.orders"} == set(settings)
    assert all(each == TOPIC_SETTINGS | durable for each in settings.values())


@pytest.mark.parametrize(
    ("kafka", "replicas"),
    [("replicas: 3", 2), ("replicas: 2", 1), ("express: true", None)],
)
def test_topics_in_an_existing_kafka_are_durable(deploy, kafka, replicas):
    """The cluster's defaults may elect unclean leaders; Express brokers fix both settings."""
    line = "      security_group: sg-0d1c2b3a\n"
    deployed = deploy(PIPELINE + EXISTING.replace(line, f"{line}      {kafka}\n"))
    settings = topic_settings(deployed)
    assert len(settings) > 3
    for each in settings.values():
        unclean = each.get("unclean.leader.election.enable")
        in_sync = each.get("min.insync.replicas")
        expected = (None, None) if replicas is None else ("false", str(replicas))
        assert (unclean, in_sync) == expected
    owner = deployed.templates["shop-network"]["Outputs"]["KafkaOwner"]["Value"]
    assert ("unclean.leader.election.enable=false" in str(owner)) == (replicas is not None)


def test_the_login_is_that_of_the_role_which_the_source_gets(created):
    secrets = [each["Properties"] for each in created.resources("AWS::SecretsManager::Secret")]
    [template] = [s["GenerateSecretString"] for s in secrets if s["Name"] == "shop/source"]
    assert json.loads(template["SecretStringTemplate"]) == {"username": "cdclake_shop"}
    assert template["GenerateStringKey"] == "password"


def test_what_glue_maintains_is_optimized_and_nothing_else(variants):
    optimizers = [each["Properties"] for each in variants["existing"].resources(OPTIMIZER)]
    assert {(each["TableName"], each["Type"]) for each in optimizers} == {
        (table, kind)
        for table in ("visits", "visits_changes")
        for kind in ("compaction", "orphan_file_deletion", "retention")
    }
    [retention] = {
        json.dumps(each["TableOptimizerConfiguration"]["RetentionConfiguration"])
        for each in optimizers
        if each["Type"] == "retention"
    }
    # A log's newest stamp is in the snapshot of its last append; only compactions come after it.
    assert json.loads(retention)["IcebergConfiguration"]["NumberOfSnapshotsToRetain"] >= 100
    assert variants["created"].resources(OPTIMIZER) == []


def test_glue_keeps_changelog_snapshots_for_stream_readers(variants, deploy):
    def days(deployed: Synthesized) -> dict[str, int]:
        return {
            each["Properties"]["TableName"]: each["Properties"]["TableOptimizerConfiguration"][
                "RetentionConfiguration"
            ]["IcebergConfiguration"]["SnapshotRetentionPeriodInDays"]
            for each in deployed.resources(OPTIMIZER)
            if each["Properties"]["Type"] == "retention"
        }

    assert days(variants["existing"]) == {"visits": 5, "visits_changes": 5}
    longer = deploy(f"{PIPELINE}{OPTIMIZED}lake: {{stream_readers_hours: 150}}\n")
    assert days(longer) == {"visits": 5, "visits_changes": 7}


def test_the_optimizers_come_when_somebody_makes_their_tables(variants):
    """The stream makes a table of the first events that the connector brings."""
    manifest = json.loads((variants["existing"].folder / "manifest.json").read_text())
    needed = manifest["artifacts"]["shop-optimizers-1"]["dependencies"]
    assert {"shop-cdc", "shop-processing"} <= {*needed}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_stack_comes_after_those_from_which_it_imports(variants, name):
    deployed = variants[name]
    artifacts = json.loads((deployed.folder / "manifest.json").read_text())["artifacts"]
    for stack, template in deployed.templates.items():
        exporting = {export.partition(":")[0] for export in imports(template)}
        assert exporting <= {*artifacts[stack].get("dependencies", [])}, stack


def test_a_job_is_scheduled_where_the_file_says_so(variants):
    def schedules(variant: str) -> dict[str, str]:
        found = [each["Properties"] for each in variants[variant].resources(SCHEDULE)]
        assert all(each["RoleArn"] for each in (one["Target"] for one in found))
        return {each["Name"]: each["ScheduleExpression"] for each in found}

    always = {
        "shop-connector": "rate(5 minutes)",
        "shop-keeper": "rate(5 minutes)",
        "shop-maintain": "cron(0 3 * * ? *)",
        "shop-sourcecheck": "rate(30 minutes)",
    }
    assert schedules("created") == always
    assert schedules("existing") == {**always, "shop-apply": "rate(15 minutes)"}


def test_people_query_within_bounds_and_find_a_query_for_each_table(variants):
    settings = variants["created"].only("AWS::Athena::WorkGroup")["WorkGroupConfiguration"]
    assert settings["BytesScannedCutoffPerQuery"] == 100 * 1024**3
    saved = [
        each["Properties"] for each in variants["existing"].resources("AWS::Athena::NamedQuery")
    ]
    assert {(each["Name"], each["Database"], each["WorkGroup"]) for each in saved} == {
        (table, "cdc_iceberg", "shop") for table in ("orders", "visits")
    }


def test_without_athena_among_the_readers_there_is_nothing_to_query_with(deploy):
    text = VARIANTS["created"].replace("tables:", "lake: {readers: [spark]}\ntables:", 1)
    assert not [name for name in deploy(text).templates if "quer" in name]
