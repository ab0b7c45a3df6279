"""What Firehose delivers is deployed in two steps, and its streams are what the plan says."""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any

import pytest

from cdclake.config.problems import InvalidPipeline
from cdclake.iceberg.schemas import changes_schema
from cdclake.plan import Plan
from tests.synth.deployments import (
    DELIVERED,
    EXISTING,
    PIPELINE,
    PRIVATE,
    Deploy,
    Synthesized,
    Template,
)
from tests.synth.permissions import allows, own_statements, rendered, role_of
from tests.synth.rules.reading import listed
from tests.synth.test_recorded_requests import roles_of_function
from tests.synth.upgrades import changes

STREAM, ALARM = "AWS::KinesisFirehose::DeliveryStream", "AWS::CloudWatch::Alarm"
STATE, KEY = "arn:aws:s3:::state", "arn:aws:kms:eu-west-1:111122223333:key/own"
SECRET = "secretsmanager:GetSecretValue"
SALT = "shop-source:ExportsOutputRefSaltSecret872B8D540F340E09"  # as it is rendered here
INTO = "IcebergDestinationConfiguration"
ONLY_DELIVERED = PIPELINE.replace(
    "    key: [order_id]\n", "    key: [order_id]\n    delivery: firehose\n"
)


def streams(deployed: Synthesized) -> dict[str, dict[str, Any]]:
    """Those that read Kafka; tests/synth/test_redrive.py has the other one."""
    found = [each["Properties"] for each in deployed.resources(STREAM)]
    return {e["DeliveryStreamName"]: e for e in found if e["DeliveryStreamType"] == "MSKAsSource"}


def plan_beside_the_function(deployed: Synthesized) -> Plan:
    return Plan.from_json(packed(deployed, "plan.json", next_to="firehose_changes.py"))


def packed(deployed: Synthesized, file: str, *, next_to: str) -> str:
    """The file in the one zip that holds it and the function."""
    for asset in deployed.folder.glob("asset.*.zip"):
        with zipfile.ZipFile(io.BytesIO(asset.read_bytes())) as archive:
            if {file, next_to} <= {*archive.namelist()}:
                return archive.read(file).decode()
    raise AssertionError("no zip holds the function")


def test_streams_are_refused_before_kafka_can_be_read_with_what_to_do(deploy: Deploy) -> None:
    with pytest.raises(InvalidPipeline, match=r"private connectivity is off.*delivery: off"):
        deploy(PIPELINE + DELIVERED)


@pytest.mark.synth
def test_the_first_step_makes_the_cluster_its_topics_and_no_stream(deploy: Deploy) -> None:
    first = deploy(PIPELINE + DELIVERED + "aws: {delivery: off}\n")
    assert first.resources(STREAM) == []
    assert "ConnectivityInfo" not in first.only("AWS::MSK::Cluster")["BrokerNodeGroupInfo"]
    topics = {each["Properties"]["TopicName"] for each in first.resources("AWS::MSK::Topic")}
    assert {"shop.public.events", "shop.trade"} <= topics
    assert not any(name.startswith("shop.public.sales") for name in topics)


def test_the_second_step_lets_firehose_in_and_makes_the_streams(variants) -> None:
    second = variants["delivered"]
    statement = second.only("AWS::MSK::ClusterPolicy")["Policy"]["Statement"][0]
    assert statement["Principal"] == {"Service": "firehose.amazonaws.com"}
    assert "kafka:CreateVpcConnection" in statement["Action"]
    assert streams(second).keys() == {"shop-events", "shop-trade"}


def test_off_takes_the_streams_away_and_nothing_that_it_needs_to_go_on(deploy: Deploy) -> None:
    """By an update of its stack: one that left the app would stand as it was, with its streams."""
    off = deploy(PIPELINE + DELIVERED + PRIVATE.replace("}", ", delivery: off}"))
    assert "shop-delivery" in off.templates
    found = changes(deploy(PIPELINE + DELIVERED + PRIVATE), off)
    gone = [name for name in found.removed if f"/{STREAM}/" in name]
    assert len(gone) == len(["shop-events", "shop-trade", "shop-redrive"])
    assert {name.split("/")[0] for name in found.removed} == {"shop-delivery", "shop-observability"}
    assert not (found.added or found.replaced)


@pytest.mark.synth
def test_an_existing_cluster_is_its_owners_who_is_told_what_to_do(deploy: Deploy) -> None:
    existing = EXISTING + "  private_connectivity: on\n"
    deployed = deploy(PIPELINE + DELIVERED + existing)
    said = deployed.templates["shop-network"]["Outputs"]["KafkaOwnerForFirehose"]["Value"]
    assert "multi-VPC" in said and "kafka:CreateVpcConnection" in said
    assert deployed.resources("AWS::MSK::ClusterPolicy") == []
    assert streams(deployed).keys() == {"shop-events", "shop-trade"}


def test_a_stream_is_what_the_plan_says_of_it(variants) -> None:
    deployed = variants["delivered"]
    plan = plan_beside_the_function(deployed)
    for delivery in plan.deliveries:
        made = streams(deployed)[f"shop-{delivery.name}"]
        into = made[INTO]
        assert made["MSKSourceConfiguration"]["TopicName"] == delivery.topic
        logs = [t["DestinationTableName"] for t in into["DestinationTableConfigurationList"]]
        assert logs == [plan.table(name).changes for name in delivery.tables]
        assert into["BufferingHints"] == {
            "IntervalInSeconds": delivery.buffer_seconds,
            "SizeInMBs": delivery.buffer_mib,
        }
        assert into["RetryOptions"] == {"DurationInSeconds": delivery.retry_seconds}
        assert into["s3BackupMode"] == "FailedDataOnly"
        assert into["S3Configuration"].keys() == {
            *("BucketARN", "RoleARN", "ErrorOutputPrefix", "CompressionFormat"),
        }
        kinds = [each["Type"] for each in into["ProcessingConfiguration"]["Processors"]]
        assert kinds == ["Lambda", *(["MetadataExtraction"] if delivery.route else [])]
        assert json.dumps(delivery.route or "Lambda") in json.dumps(into)


def allowed(role: Template) -> set[tuple[str, str, str]]:
    """Each action, its resource and the values of its condition, without those on logs."""
    return {
        (action, rendered(on), " ".join(rendered(value) for _, value in each.items()))
        for statement in own_statements(role)
        for each in [next(iter(statement.get("Condition", {"": {}}).values()))]
        for action in listed(statement["Action"])
        for on in listed(statement["Resource"])
        if not action.startswith("logs:")
    }


def test_function_reads_erased_keys_widened_columns_and_salt(variants) -> None:
    deployed = variants["delivered"]
    erased = {
        ("s3:ListBucket", STATE, "control/erasures/"),
        ("s3:ListBucket", STATE, "control/widened"),
        ("s3:GetObject", f"{STATE}/control/widened.json", ""),
        ("s3:GetObject", f"{STATE}/control/widened_changelogs.json", ""),
        ("s3:GetObject", f"{STATE}/control/erasures/*", ""),
        ("kms:Decrypt", KEY, "s3.eu-west-1.amazonaws.com"),
        ("secretsmanager:GetSecretValue", SALT, ""),
        ("kms:Decrypt", KEY, "secretsmanager.eu-west-1.amazonaws.com"),
    }
    assert allowed(role_of(deployed, "Rows")) == erased
    assert erased < allowed(role_of(deployed, "RedriveFunction"))


def test_verify_reads_delivered_topics_and_the_salt(variants) -> None:
    topic = "arn:aws:kafka:eu-west-1:111122223333:topic/shop/uuid/shop.trade"
    for name, may in (("delivered", True), ("governed", False)):
        role = role_of(variants[name], "VerifyTables")
        assert allows(role, "kafka-cluster:DescribeTopic", topic)
        assert allows(role, "kafka-cluster:ReadData", topic) is may
    assert allows(role_of(variants["delivered"], "VerifyTables"), SECRET, SALT)
    arguments = {
        job["Properties"]["Name"]: job["Properties"]["DefaultArguments"]
        for job in variants["delivered"].resources("AWS::Glue::Job")
    }
    assert arguments["shop-verify_tables"]["--mask_salt"] == "shop/mask"


def test_only_functions_that_make_changelog_rows_get_the_salt(variants) -> None:
    functions = [
        each["Properties"]
        for variant in ("delivered", "puts", "web logs")
        for each in variants[variant].resources("AWS::Lambda::Function")
    ]
    given = {
        each["Handler"]: each["Environment"]["Variables"]
        for each in functions
        if "MASK_SALT" in each["Environment"]["Variables"]
    }
    assert given.keys() == {"firehose_changes.handler", "firehose_redrive.handler"}
    for variables in given.values():
        assert variables["MASK_SALT"] == "shop/mask"
        assert "StateBucket" in str(variables["CONTROL"])
        assert rendered(variables["CONTROL"]).endswith("/control")
    puts = [*roles_of_function(variants["puts"], "firehose_puts")]
    assert [allowed(role) for role in puts] == [set()] * len(puts)
    assert puts


def test_a_stream_waits_for_its_logs_and_their_columns(variants) -> None:
    deployed = variants["delivered"]
    plan = plan_beside_the_function(deployed)
    waiting = deployed.templates["shop-delivery"]["Resources"]
    [(name, wanted)] = [
        (logical, each["Properties"])
        for logical, each in waiting.items()
        if each["Type"] == "Custom::CdclakeTables"
    ]
    columns = json.loads(packed(deployed, "columns.json", next_to="custom_resources.py"))
    assert columns.keys() == {*wanted["Tables"]}
    assert wanted["ColumnsDigest"]
    events = plan.table("events")
    logged = [column for column, _ in changes_schema(events, plan).columns]
    assert columns["events_changes"] == ["id", "body"] == logged[:2]
    assert set(wanted["Tables"]) == {"events_changes", "sales_changes", "returns_changes"}
    after = [each for each in waiting.values() if name in str(each.get("DependsOn"))]
    assert {each["Type"] for each in after} >= {STREAM, "AWS::Lambda::Function"}


@pytest.mark.synth
def test_what_failed_is_kept_for_as_long_as_the_file_says(deploy: Deploy) -> None:
    days = PRIVATE.replace("}", ", failed_days: 90}")
    rules = [
        rule
        for bucket in deploy(PIPELINE + DELIVERED + days).resources("AWS::S3::Bucket")
        for rule in bucket["Properties"]["LifecycleConfiguration"]["Rules"]
        if rule["Id"].startswith("Expire-")
    ]
    assert [(rule["Prefix"], rule["ExpirationInDays"]) for rule in rules] == [("firehose/", 90)]


def test_without_a_streamed_table_the_stream_runs_by_schedule_and_is_not_kept(
    deploy: Deploy,
) -> None:
    deployed = deploy(ONLY_DELIVERED + PRIVATE)
    schedules = {
        each["Properties"]["Name"]: json.loads(each["Properties"]["Target"]["Input"])
        for each in deployed.resources("AWS::Scheduler::Schedule")
    }
    assert schedules == {
        "shop-apply": {"JobName": "shop-apply_changes"},
        "shop-connector": {},
        "shop-keeper": {},
        "shop-maintain": {"JobName": "shop-maintain_tables"},
        "shop-sourcecheck": {},
        "shop-stream": {"JobName": "shop-stream_changes"},
    }
    [apply] = [
        job["Properties"]["DefaultArguments"]
        for job in deployed.resources("AWS::Glue::Job")
        if job["Properties"]["Name"] == "shop-apply_changes"
    ]
    assert {"--plan", "--control", "--metrics"} <= apply.keys()
    names = {each["Properties"]["AlarmName"] for each in deployed.resources(ALARM)}
    assert not any("keeper-" in name for name in names)
    assert {"shop-apply-failed", "shop-delivery-late", "shop-freshness"} <= names


def test_a_deployment_starts_the_scheduled_stream_that_it_waits_for(deploy: Deploy) -> None:
    scheduled = deploy(ONLY_DELIVERED + PRIVATE)
    assert awaited(scheduled) == {"Job": "shop-stream_changes"}
    job = "arn:aws:glue:eu-west-1:111122223333:job/shop"
    [role] = [role for role in roles_of_function(scheduled, "custom_resources") if starts(role)]
    assert starts(role) == {f"{job}-stream_changes"}
    assert role == role_of(scheduled, "LogsDoer")
    off = deploy(ONLY_DELIVERED + PRIVATE.replace("}", ", stream: off}"))
    assert awaited(off) == {}
    assert not any(starts(role) for role in roles_of_function(off, "custom_resources"))


def awaited(deployed: Synthesized) -> dict[str, Any]:
    """The job that the one wait for changelogs may start."""
    [waiting] = deployed.resources("Custom::CdclakeTables")
    return {name: value for name, value in waiting["Properties"].items() if name == "Job"}


def starts(role: Template) -> set[str]:
    """The jobs that the role may start."""
    return {on for action, on, _ in allowed(role) if action == "glue:StartJobRun"}


@pytest.mark.synth
def test_the_file_may_say_that_the_stream_always_runs(deploy: Deploy) -> None:
    deployed = deploy(ONLY_DELIVERED + "stream: {mode: always_on}\n" + PRIVATE)
    assert awaited(deployed) == {}
    names = {each["Properties"]["AlarmName"] for each in deployed.resources(ALARM)}
    assert "shop-keeper-silent" in names


@pytest.mark.synth
def test_ten_streams_are_watched_by_two_alarms_of_a_kind(deploy: Deploy) -> None:
    tables = "".join(
        f"  public.t{n}:\n    key: [id]\n    columns: {{id: bigint}}\n    delivery: firehose\n"
        for n in range(10)
    )
    deployed = deploy(PIPELINE + tables + PRIVATE)
    late = {
        each["Properties"]["AlarmName"]: each["Properties"]
        for each in deployed.resources(ALARM)
        if "delivery-late" in each["Properties"]["AlarmName"]
    }
    assert late.keys() == {"shop-delivery-late", "shop-delivery-late-2"}
    watched = {
        dimension["Value"]
        for alarm in late.values()
        for metric in alarm["Metrics"]
        for dimension in metric.get("MetricStat", {}).get("Metric", {}).get("Dimensions", ())
    }
    assert watched == set(streams(deployed))
    assert all(len(alarm["Metrics"]) <= 10 for alarm in late.values())


@pytest.mark.synth
def test_the_thresholds_leave_firehose_what_it_may_collect(deploy: Deploy) -> None:
    buffered = "firehose: {buffer: {seconds: 900, mib: 1}, function: {seconds: 300}}\n"
    deployed = deploy(ONLY_DELIVERED + buffered + PRIVATE)
    [late] = [
        each["Properties"]
        for each in deployed.resources(ALARM)
        if each["Properties"]["AlarmName"] == "shop-delivery-late"
    ]
    assert late["Threshold"] == 15 * 60 + 900 + 300


def test_more_streams_than_a_stack_holds_are_refused_at_the_first_too_many(
    deploy: Deploy,
) -> None:
    tables = "".join(
        f"  public.t{n}:\n    key: [id]\n    columns: {{id: bigint}}\n    delivery: firehose\n"
        for n in range(81)
    )
    with pytest.raises(InvalidPipeline, match=re.escape("has no room for 'public.t80'")):
        deploy(PIPELINE + tables + PRIVATE)


def test_brokers_that_have_no_private_links_are_refused(deploy: Deploy) -> None:
    small = "aws: {kafka: {create: {instance: kafka.t3.small}}, private_connectivity: on}\n"
    with pytest.raises(InvalidPipeline, match="MSK has none for"):
        deploy(PIPELINE + DELIVERED + small)
