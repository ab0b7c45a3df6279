"""The function that prepares the source as it is deployed: its zip, its place, what it may do."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest

from cdclake import zip_files
from cdclake.config.deployment import load_deployment
from cdclake.plan import Plan
from cdclake.stacks.bundles import PREPARATION_WHEELS, build_preparation
from tests.source_tree import PROJECT
from tests.synth.deployments import EXISTING, OFF, PIPELINE, Synthesized, Template
from tests.synth.roles import allowances

FUNCTION = "AWS::Lambda::Function"


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(zip_files, "BUILT", tmp_path / "built")
    return load_deployment(PROJECT / "pipelines" / "shop.yaml").plan


def test_it_holds_all_that_it_imports_and_the_plan(plan):
    with zipfile.ZipFile(build_preparation(plan).path) as archive:
        names = set(archive.namelist())
        told = Plan.from_json(archive.read("plan.json").decode())
        code = archive.read("prepare_source.py").decode()
    assert told == plan
    for module in re.findall(r"^from (cdclake[.\w]+) import", code, re.MULTILINE):
        assert module.replace(".", "/") + ".py" in names
    assert {"psycopg/__init__.py", "psycopg_binary/__init__.py", "rds-ca.pem"} <= names
    others = {
        f"cdclake/{name}" for name in ("cli", "config", "functions", "jobs", "local", "stacks")
    }
    assert not any(name.startswith(tuple(others)) for name in names)


def test_its_packages_are_for_the_function_s_python_and_processor(created):
    [binary] = [wheel.name for wheel in PREPARATION_WHEELS.folder.glob("psycopg_binary-*.whl")]
    properties = prepares(created)
    assert (properties["Runtime"], properties["Architectures"]) == ("python3.14", ["arm64"])
    assert "-cp314-cp314-" in binary and "aarch64" in binary


def test_it_runs_the_driver_that_the_local_lake_runs():
    pinned = r"^psycopg(?:\[binary\])?==(\S+) \\$"
    [local] = set(re.findall(pinned, (PROJECT / "requirements.lock").read_text(), re.MULTILINE))
    assert re.findall(pinned, PREPARATION_WHEELS.lock.read_text(), re.MULTILINE) == [local]


def test_equal_plans_give_equal_bytes_and_another_plan_another_name(plan, tmp_path, monkeypatch):
    first = build_preparation(plan)
    monkeypatch.setattr(zip_files, "BUILT", tmp_path / "again")
    again = build_preparation(Plan.from_json(plan.to_json()))
    assert first.path != again.path
    assert first.path.read_bytes() == again.path.read_bytes()
    fewer = json.loads(plan.to_json())
    del fewer["tables"][0]
    assert build_preparation(Plan.from_json(json.dumps(fewer))).digest != first.digest


def prepares(deployed: Synthesized) -> Template:
    """The properties of the function."""
    [found] = [
        function["Properties"]
        for function in deployed.resources(FUNCTION)
        if function["Properties"]["Handler"] == "prepare_source.handler"
    ]
    return dict(found)


def test_an_existing_source_is_prepared_where_it_is(variants):
    properties = prepares(variants["existing"])
    told = properties["Environment"]["Variables"]
    [secret] = re.findall(r"secret_arn: (\S+)", EXISTING)
    assert (told["HOST"], told["PORT"], told["DATABASE"]) == ("db.example.org", "6432", "shop")
    assert (told["ADMIN_SECRET"], told["LOGIN_SECRET"]) == (secret, "shop/source")
    assert properties["VpcConfig"]["SubnetIds"] == ["subnet-0a1b2c3d", "subnet-0d1c2b3a"]


def test_the_check_runs_on_a_schedule_with_the_connectors_login_only(variants):
    deployed = variants["existing"]
    [check] = [
        function["Properties"]
        for function in deployed.resources(FUNCTION)
        if function["Properties"]["Handler"] == "prepare_source.check"
    ]
    told = check["Environment"]["Variables"]
    assert (told["HOST"], told["LOGIN_SECRET"]) == ("db.example.org", "shop/source")
    assert told["DIMENSION"] == "shop"
    assert "ADMIN_SECRET" not in told
    schedules = {
        each["Properties"]["Name"]: each["Properties"]["ScheduleExpression"]
        for each in deployed.resources("AWS::Scheduler::Schedule")
    }
    assert schedules["shop-sourcecheck"] == "rate(30 minutes)"
    allowed = allowances(deployed, "lambda.amazonaws.com", named="SourceCheck")
    assert len(allowed["secretsmanager:GetSecretValue"]) == 1
    written = {each.partition("/")[2] for each in allowed["s3:PutObject"]}
    assert written == {
        "control/relations.json",
        "control/widened.json",
        "control/new_columns.json",
        "control/repairs/*",
        "control/resume/*",
    }


def test_the_connector_comes_after_it_and_goes_before_it(created):
    resources = created.templates["shop-cdc"]["Resources"]
    [prepared] = [n for n, r in resources.items() if r["Type"] == "Custom::CdclakeSource"]
    [connector] = [r for r in resources.values() if r["Type"] == "AWS::KafkaConnect::Connector"]
    assert prepared in connector["DependsOn"]


def test_off_leaves_the_source_prepared(created, deploy):
    assert deploy(OFF).only("Custom::CdclakeSource") == created.only("Custom::CdclakeSource")


def test_a_new_epoch_prepares_the_source_again(created, deploy):
    """A slot may have been lost with the publication, or another server may be the source."""
    later = deploy(f"{PIPELINE}aws: {{connect: {{epoch: 2}}}}\n")
    before, after = (each.only("Custom::CdclakeSource") for each in (created, later))
    assert {key for key in after if after[key] != before.get(key)} == {"Epoch"}


def test_it_may_read_two_logins_and_keep_the_records_and_no_more(variants):
    allowed = allowances(variants["existing"], "lambda.amazonaws.com", named="Preparation")
    assert len(allowed["secretsmanager:GetSecretValue"]) == 2
    assert len(allowed["kms:Decrypt"]) == 1
    written = {each.partition("/")[2] for each in allowed["s3:PutObject"]}
    assert written == {"control/relations.json", "control/former_relations.json"}
    assert allowed["s3:GetObject"] == allowed["s3:PutObject"]
    assert allowed["ec2:CreateNetworkInterface"] == {
        "ec2:R:A:subnet/subnet-0a1b2c3d",
        "ec2:R:A:subnet/subnet-0d1c2b3a",
        "ec2:R:A:security-group/?",
        "ec2:R:A:network-interface/*",
    }
    everywhere = {action for action, on in allowed.items() if "*" in on}
    assert everywhere == {"ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"}
    assert {action.partition(":")[0] for action in allowed} == {
        "ec2",
        "kms",
        "logs",
        "s3",
        "secretsmanager",
    }
    assert {action for action in allowed if action.startswith("s3:")} == {
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutObject",
    }
