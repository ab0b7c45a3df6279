"""Roles cannot reach what other pipelines own in a shared cluster or account."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import Any

import pytest

from cdclake import naming
from tests.synth.deployments import VARIANTS, Synthesized
from tests.synth.permissions import allows, own_statements, rendered, role_of
from tests.synth.rules.reading import listed

HERE = "eu-west-1:111122223333"
GROUP = f"arn:aws:kafka:{HERE}:group/shop/uuid"
GLUE, WAREHOUSE = f"arn:aws:glue:{HERE}", "arn:aws:s3:::warehouse"
LOGS = f"arn:aws:logs:{HERE}:log-group"
# Glue may name them so under a security configuration: its API reference of `LogGroupName`, and
# older versions.
OTHER_GROUPS = (
    "/aws-glue/jobs-shop-glue-ProbeRole-1A2B-shop-jobs/output",
    "/aws-glue/jobs/shop-jobs-role/shop-glue-ProbeRole-1A2B/error",
    "/aws-glue/jobs/shop/probe/shop-jobs-role/shop-glue-ProbeRole-1A2B/error",
    "/aws-glue/jobs/shop/probe-shop-glue-ProbeRole-1A2B-shop-jobs/output",
)


def test_the_connector_alters_no_group_of_another_connector(created: Synthesized) -> None:
    roles = [
        role
        for role in created.resources("AWS::IAM::Role")
        if allows(role, "kafka-cluster:AlterGroup", f"{GROUP}/__amazon_msk_connect_own")
    ]
    connector = f"{GROUP}/connect-shop-source"
    assert [allows(role, "kafka-cluster:AlterGroup", connector) for role in roles].count(True) == 1
    assert len(roles) == 2, "the connector's and that of the probe's connector"
    for role in roles:
        for other in ("connect-billing-source", "connect-shopping-source", "app-consumers"):
            assert not allows(role, "kafka-cluster:AlterGroup", f"{GROUP}/{other}")


@pytest.mark.parametrize("variant", ["governed", "small"])
def test_one_role_starts_the_jobs_that_a_file_can_schedule(variants, variant) -> None:
    """It stays the same when a job loses its last schedule, which is deleted after an update."""
    deployed = variants[variant]
    role, jobs = role_of(deployed, "SchedulesStartJobs"), set()
    for schedule in deployed.resources("AWS::Scheduler::Schedule"):
        target = schedule["Properties"]["Target"]
        if job := json.loads(target["Input"]).get("JobName"):
            jobs.add(job)
            assert "SchedulesStartJobsRole" in target["RoleArn"]["Fn::GetAtt"][0]
    granted = {
        rendered(on).rpartition("/")[2]
        for statement in own_statements(role)
        if "glue:StartJobRun" in listed(statement["Action"])
        for on in listed(statement["Resource"])
    }
    assert jobs <= granted == {f"shop-{job}" for job in naming.SCHEDULED_JOBS}
    [trust] = listed(role["Properties"]["AssumeRolePolicyDocument"]["Statement"])
    assert trust["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    group = rendered(trust["Condition"]["ArnLike"]["aws:SourceArn"])
    assert group == f"arn:aws:scheduler:{HERE}:schedule-group/shop"


def test_a_stream_of_one_table_appends_to_it_alone(variants) -> None:
    """A domain of many tables would exceed what IAM and a template hold."""
    deployed = variants["delivered"]
    table, files = f"{GLUE}:table/cdc_iceberg", f"{WAREHOUSE}/cdc_iceberg.db"
    for stream, expected in (("events", {"events"}), ("trade", {"events", "sales", "returns"})):
        role = role_of(deployed, stream)
        for name in ("events", "sales", "returns"):
            may = name in expected
            assert allows(role, "glue:UpdateTable", f"{table}/{name}_changes") == may
            assert allows(role, "s3:PutObject", f"{files}/{name}_changes/data/a.parquet") == may


@pytest.mark.parametrize("stack", ["shop-puts-clicks", "shop-weblogs-request"])
def test_optimizers_of_puts_maintain_their_tables_alone(variants, stack) -> None:
    deployed = variants["puts" if "puts" in stack else "web logs"]
    template = deployed.templates[stack]["Resources"]
    [role] = [
        each
        for logical, each in template.items()
        if each["Type"] == "AWS::IAM::Role" and logical.startswith("Optimizers")
    ]
    own = [
        each["Properties"]["TableName"]
        for each in template.values()
        if each["Type"] == "AWS::Glue::TableOptimizer"
    ]
    assert own
    for name in (*own, "orders", "orders_changes"):
        for action, on in (
            ("glue:UpdateTable", f"{GLUE}:table/cdc_iceberg/{name}"),
            ("s3:DeleteObject", f"{WAREHOUSE}/cdc_iceberg.db/{name}/data/a.parquet"),
        ):
            assert allows(role, action, on) == (name in own), (name, action)


def key_patterns(deployed: Synthesized) -> list[str]:
    """The log groups that the key admits."""
    [key] = deployed.resources("AWS::KMS::Key")
    [statement] = [
        statement
        for statement in key["Properties"]["KeyPolicy"]["Statement"]
        if "logs." in str(statement["Principal"])
    ]
    patterns = statement["Condition"]["ArnLike"]["kms:EncryptionContext:aws:logs:arn"]
    return [rendered(pattern) for pattern in listed(patterns)]


def log_group_names(deployed: Synthesized) -> list[str]:
    """Names of the log groups; CloudFormation generates one from the stack's and the resource's."""
    found = []
    for stack, template in deployed.templates.items():
        for logical, resource in template["Resources"].items():
            if resource["Type"] == "AWS::Logs::LogGroup":
                generated = f"{stack}-{logical}-1A2B"
                name: Any = resource["Properties"].get("LogGroupName", generated)
                found.append(rendered(name))
    return found


@pytest.mark.parametrize("name", OTHER_GROUPS)
def test_the_probe_alone_may_log_where_glue_names_the_group(created, name) -> None:
    """Without that its logs would be nowhere, and the check could not find out where they go."""
    group = f"{LOGS}:{name}"
    calls = (
        ("logs:CreateLogGroup", group),
        ("logs:AssociateKmsKey", group),
        ("logs:CreateLogStream", f"{group}:log-stream:jr-driver"),
        ("logs:PutLogEvents", f"{group}:log-stream:jr-driver"),
    )
    for action, on in calls:
        roles = [
            role
            for role in created.resources("AWS::IAM::Role")
            if allows(role, action, on) and "glue." in json.dumps(role)
        ]
        assert roles == [role_of(created, "Probe")]


@pytest.mark.parametrize(
    "name", ["/aws-glue/jobs/output", "/aws-glue/jobs/shop-dev/probe/output", "/aws/lambda/shop"]
)
def test_the_probe_logs_nowhere_else(created, name) -> None:
    probe = role_of(created, "Probe")
    assert not allows(probe, "logs:CreateLogGroup", f"{LOGS}:{name}")
    assert not allows(probe, "logs:PutLogEvents", f"{LOGS}:{name}:log-stream:jr-driver")


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_key_is_for_the_log_groups_of_its_deployment(
    variants: dict[str, Synthesized], variant: str
) -> None:
    deployed = variants[variant]
    patterns, names = key_patterns(deployed), log_group_names(deployed)
    assert names

    def is_admitted(name: str) -> bool:
        return any(fnmatchcase(f"{LOGS}:{name}", pattern) for pattern in patterns)

    assert [name for name in names if not is_admitted(name)] == []
    assert all(is_admitted(name) for name in OTHER_GROUPS)
    others = (
        "billing-app",
        "/aws-glue/jobs-billing-glue-ProbeRole-1A-billing-jobs/output",
        "/aws/lambda/billing",
        "/aws-glue/jobs/output",
        "/aws/rds/instance/x/y",
    )
    assert [name for name in others if is_admitted(name)] == []
