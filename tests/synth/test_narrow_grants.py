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
LOGS = f"arn:aws:logs:{HERE}:log-group"


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
    others = (
        "billing-app",
        "/aws/lambda/billing",
        "/aws-glue/jobs/output",
        "/aws/rds/instance/x/y",
    )
    assert [name for name in others if is_admitted(name)] == []
