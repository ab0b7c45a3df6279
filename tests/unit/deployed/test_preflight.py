"""Each check of an account with an answer that passes and one that fails."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from cdclake.cli import main as command
from cdclake.config import regions
from cdclake.deployed.preflight import create_roles, preflight
from tests.unit.deployed.accounts import (
    ALL_ZONES,
    SERVICES,
    Answers,
    answer_calls,
    by_iam,
    deployment,
    endpoint,
    orderable,
    parameters,
    quotas,
    refused,
)

# By fault: the operation with its answer, the check that fails, and a part of detail or remedy.
FAULTS: dict[str, tuple[str, Any, str, str]] = {
    "not bootstrapped": (
        "GetParameter", refused("ParameterNotFound"), "bootstrap", "cdk bootstrap",
    ),
    "old bootstrap": ("GetParameter", {"Parameter": {"Value": "4"}}, "bootstrap", "older than 6"),
    "no such zone": (
        "DescribeAvailabilityZones",
        {"AvailabilityZones": [{"ZoneName": "eu-west-1a", "ZoneId": "euw1-az2"}]},
        "zones", "no zone b, c",
    ),
    "an endpoint is not in a zone": (
        "DescribeVpcEndpointServices",
        {"ServiceDetails": [endpoint(s, ALL_ZONES[: 2 if s == "glue" else 3]) for s in SERVICES]},
        "endpoints", "com.amazonaws.eu-west-1.glue",
    ),
    "the class cannot be ordered": (
        "DescribeOrderableDBInstanceOptions", {"OrderableDBInstanceOptions": []},
        "database class", "not in this region",
    ),
    "the class is not in a zone": (
        "DescribeOrderableDBInstanceOptions",
        {"OrderableDBInstanceOptions": [orderable("17.6", ALL_ZONES[:2])]},
        "database class", "not in eu-west-1c",
    ),
    "a parameter is fixed": (
        "DescribeEngineDefaultParameters", parameters(modifiable=False), "database parameters",
        "rds.logical_replication = 1: it cannot be changed",
    ),
    "a slot may keep less": (
        "DescribeEngineDefaultParameters", parameters(wal_mb="0-1024"), "database parameters",
        "max_slot_wal_keep_size = 20480: it takes 0-1024",
    ),
    "a family without the parameters": (
        "DescribeEngineDefaultParameters", {"EngineDefaults": {"Parameters": []}},
        "database parameters", "it has no such parameter",
    ),
    "no such Kafka": (
        "ListKafkaVersions",
        {"KafkaVersions": [{"Version": "3.9.x.kraft", "Status": "DEPRECATED"}]},
        "kafka version", "not 3.9.x.kraft",
    ),
    "credentials that have ended": (
        "GetCallerIdentity", refused("ExpiredToken", "it has expired"), "identity", "sign in",
    ),
    "functions at once": ("ListServiceQuotas", quotas(2), "quota: lambda", "20 are needed"),
    "few brokers": ("ListServiceQuotas", quotas(2), "quota: kafka", "3 are needed"),
    "few workers of Glue": ("ListServiceQuotas", quotas(2), "quota: glue", "20 are needed"),
    "Lake Formation": (
        "GetDataLakeSettings", by_iam("arn:x"), "lake formation", "lake_formation: true",
    ),
    "the database exists": (
        "GetDatabase", {"Database": {"Name": "n"}}, "names", "cdc_iceberg exists",
    ),
    "a secret that is being deleted": (
        "DescribeSecret", {"DeletedDate": datetime(2026, 1, 1, tzinfo=UTC)}, "names",
        "--force-delete-without-recovery",
    ),
    "a cluster that was retained": (
        "ListClustersV2", {"ClusterInfoList": [{"ClusterName": "shop"}]}, "names",
        "the MSK cluster shop exists",
    ),
    "logs of an earlier try": (
        "DescribeLogGroups", {"logGroups": [{"logGroupName": "/aws-glue/jobs/shop/x/output"}]},
        "names", "delete-log-group",
    ),
}  # fmt: skip


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Answers of AWS by operation; a test changes one of them."""
    return answer_calls(monkeypatch)


def test_an_account_that_is_ready(answers: Answers, tmp_path: Path) -> None:
    found = preflight(deployment(tmp_path))
    assert [check for check in found if check.state != "ok"] == []
    assert len({check.name for check in found}) == 15


def test_every_check_has_a_test_in_which_it_does_not_pass(answers: Answers, tmp_path: Path) -> None:
    checks = {check.name for check in preflight(deployment(tmp_path))}
    by_answer = {name for _, _, name, _ in FAULTS.values()}
    assert checks - by_answer == {"region", "service-linked roles", "connector password"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_its_check_with_a_remedy(
    answers: Answers, tmp_path: Path, fault: str
) -> None:
    operation, answer, name, part = FAULTS[fault]
    answers[operation] = answer
    failures = [check for check in preflight(deployment(tmp_path)) if check.state == "failed"]
    named = [check for check in failures if check.name == name]
    assert named
    assert any(part in f"{check.detail} {check.remedy}" for check in named)
    assert all(check.remedy for check in failures)


def test_the_region_must_be_that_of_the_file(answers: Answers, tmp_path: Path) -> None:
    found = preflight(deployment(tmp_path, "aws: {region: eu-north-1}\n"))
    [region] = [check for check in found if check.name == "region"]
    assert (region.state, region.remedy) == ("failed", "set AWS_REGION=eu-north-1")


@pytest.mark.parametrize(
    ("place", "name", "detail"),
    [
        ("eu-west-1:999988887777", "identity", "is not in the account 111122223333"),
        ("us-east-1:111122223333", "region", "is not in eu-west-1"),
    ],
)
def test_existing_resources_are_in_the_account_and_its_region(
    answers: Answers, tmp_path: Path, place: str, name: str, detail: str
) -> None:
    secret = f"arn:aws:secretsmanager:{place}:secret:shop-AbCdEf"
    existing = f"{{endpoint: d.example.org, security_group: sg-0a, secret_arn: '{secret}'}}"
    found = preflight(deployment(tmp_path, f"aws: {{source: {{existing: {existing}}}}}\n"))
    failed = [check for check in found if check.state == "failed"]
    assert [(check.name, check.detail) for check in failed] == [(name, f"{secret} {detail}")]


@pytest.mark.parametrize(
    ("more", "remedy"),
    [
        ("", "set AWS_REGION, or that of AWS_PROFILE"),
        ("aws: {region: eu-north-1}\n", "set AWS_REGION=eu-north-1"),
    ],
)
def test_without_a_region_the_check_names_how_to_set_it(
    answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, remedy: str
) -> None:
    """A client of STS has one nevertheless, `aws-global`."""
    monkeypatch.setattr(boto3.Session, "region_name", None)
    [region] = [c for c in preflight(deployment(tmp_path, more)) if c.name == "region"]
    assert (region.state, region.remedy) == ("failed", remedy)
    assert region.detail == "neither the environment nor the profile names one"


def test_a_region_must_have_firehose_where_the_file_needs_it(
    answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regions, "_WITHOUT_FIREHOSE", ("eu-west-1",))
    puts = "puts: {clicks: {columns: {id: int}}}\n"
    for more, expected in (
        (puts, ["Firehose does not write Iceberg tables in eu-west-1"]),
        ("", []),
    ):
        found = preflight(deployment(tmp_path, more))
        failed = [check for check in found if check.name == "region" and check.state == "failed"]
        assert [check.detail for check in failed] == expected


def test_parameters_of_a_cluster_are_those_of_its_family(answers: Answers, tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(given: dict[str, Any]) -> dict[str, Any]:
        asked.append(given["DBParameterGroupFamily"])
        return parameters()

    del answers["DescribeEngineDefaultParameters"]
    answers["DescribeEngineDefaultClusterParameters"] = answer
    found = preflight(deployment(tmp_path, "aws: {source: {create: {engine: aurora}}}\n"))
    [check] = [check for check in found if check.name == "database parameters"]
    assert (check.state, asked) == ("ok", ["aurora-postgresql17"])
    assert "max_slot_wal_keep_size" not in check.detail


def test_zones_that_the_region_lacks_fail(answers: Answers, tmp_path: Path) -> None:
    created = "aws: {network: {create: {zones: [use1-az1, use1-az2, use1-az4]}}}\n"
    found = preflight(deployment(tmp_path, created))
    assert "is not in eu-west-1" in next(c for c in found if c.name == "region").detail


@pytest.mark.parametrize(
    ("more", "state"),
    [("", "failed"), (", endpoint_zones: 1", "ok"), (", endpoint_zones: 2", "failed")],
)
def test_endpoints_are_only_needed_in_their_zones(
    answers: Answers, tmp_path: Path, more: str, state: str
) -> None:
    apart = [ALL_ZONES[0], ALL_ZONES[2]]
    answers["DescribeVpcEndpointServices"] = {
        "ServiceDetails": [endpoint(service, apart) for service in SERVICES]
    }
    created = f"aws: {{network: {{create: {{zones: [a, b]{more}}}}}}}\n"
    found = preflight(deployment(tmp_path, created))
    [check] = [check for check in found if check.name == "endpoints"]
    assert check.state == state
    assert ("to their number" in (check.remedy or "")) == (state == "failed")


def test_missing_roles_are_a_warning_and_can_be_made(answers: Answers, tmp_path: Path) -> None:
    answers["GetRole"] = refused("NoSuchEntity")
    [roles] = [c for c in preflight(deployment(tmp_path)) if c.name == "service-linked roles"]
    assert roles.state == "warning"
    asked: list[str] = []

    def create(given: dict[str, Any]) -> dict[str, Any]:
        asked.append(given["AWSServiceName"])
        return {}

    answers["CreateServiceLinkedRole"] = create
    made = create_roles(deployment(tmp_path))
    assert made == asked
    assert set(made) == {"rds.amazonaws.com", "kafka.amazonaws.com", "kafkaconnect.amazonaws.com"}


def test_what_may_not_be_asked_is_skipped_with_the_reason(answers: Answers, tmp_path: Path) -> None:
    answers["ListKafkaVersions"] = refused("AccessDeniedException", "not authorized")
    [kafka] = [check for check in preflight(deployment(tmp_path)) if check.name == "kafka version"]
    assert (kafka.state, kafka.detail) == (
        "skipped",
        "AWS answers AccessDeniedException: not authorized",
    )


PREPARED = datetime.now(UTC) - timedelta(days=100)


@pytest.mark.parametrize(
    ("prepared", "written", "state", "part"),
    [
        (PREPARED, PREPARED + timedelta(days=1), "failed", "login_version"),
        (PREPARED, PREPARED - timedelta(days=1), "warning", "101 days old"),
        (PREPARED + timedelta(days=30), PREPARED + timedelta(days=29), "ok", "71 days old"),
    ],
)
def test_a_password_that_is_old_or_not_the_roles_is_told(
    answers: Answers, tmp_path: Path, prepared: datetime, written: datetime, state: str, part: str
) -> None:
    resource = {
        "LogicalResourceId": "Resource", "ResourceType": "Custom::CdclakeSource",
        "Timestamp": prepared, "ResourceStatus": "UPDATE_COMPLETE",
    }  # fmt: skip
    later = {**resource, "ResourceType": "AWS::Lambda::Function", "Timestamp": datetime.now(UTC)}
    answers["DescribeStackResources"] = {"StackResources": [later, resource]}
    earlier = {"VersionStages": ["AWSPREVIOUS"], "CreatedDate": PREPARED - timedelta(days=300)}
    current = {"VersionStages": ["AWSCURRENT"], "CreatedDate": written}
    answers["ListSecretVersionIds"] = {"Versions": [earlier, current]}
    [found] = [c for c in preflight(deployment(tmp_path)) if c.name == "connector password"]
    assert found.state == state
    assert part in f"{found.detail} {found.remedy}"
    assert bool(found.remedy) == (state != "ok")


def test_no_remedy_destroys_the_salt_of_earlier_data(answers: Answers, tmp_path: Path) -> None:
    answers["DescribeSecret"] = {"Name": "shop/mask"}
    found = [check for check in preflight(deployment(tmp_path)) if check.name == "names"]
    [salt] = [check for check in found if "shop/mask" in check.detail]
    assert salt.state == "failed"
    assert "keep it" in salt.remedy
    assert "--force-delete-without-recovery" not in salt.remedy


def test_a_kinesis_stream_that_was_retained_is_found(answers: Answers, tmp_path: Path) -> None:
    entries = (
        "puts:\n  clicks: {source: kinesis, columns: {id: int}}\n  views: {columns: {id: int}}\n"
    )
    summary = {
        "StreamName": "shop-clicks", "StreamARN": "arn:x", "StreamStatus": "ACTIVE",
        "RetentionPeriodHours": 168, "StreamCreationTimestamp": datetime(2026, 1, 1, tzinfo=UTC),
        "EnhancedMonitoring": [], "OpenShardCount": 4,
    }  # fmt: skip
    for answer, state in (
        ({"StreamDescriptionSummary": summary}, "failed"),
        (refused("ResourceNotFoundException"), "ok"),
    ):
        answers["DescribeStreamSummary"] = answer
        found = preflight(deployment(tmp_path, entries))
        [names] = [check for check in found if check.name == "names"]
        assert names.state == state
        assert ("the Kinesis stream shop-clicks exists" in names.detail) == (state == "failed")


def test_names_of_a_deployment_that_exists_are_its_own(answers: Answers, tmp_path: Path) -> None:
    answers["DescribeStacks"] = {
        "Stacks": [
            {
                "StackName": "shop-lake",
                "CreationTime": datetime(2026, 1, 1, tzinfo=UTC),
                "StackStatus": "CREATE_COMPLETE",
            }
        ]
    }
    answers["GetDatabase"] = {"Database": {"Name": "cdc_iceberg"}}
    [names] = [check for check in preflight(deployment(tmp_path)) if check.name == "names"]
    assert names.state == "ok"


def test_the_command_prints_every_check(
    answers: Answers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment(tmp_path)
    answers["GetParameter"] = refused("ParameterNotFound")
    with pytest.raises(SystemExit) as caught:
        command.main(("doctor", str(tmp_path / "p.yaml"), "--target", "aws", "--json"))
    told = json.loads(capsys.readouterr().out)
    assert (caught.value.code, told["ok"]) == (1, False)
    states = {check["name"]: check["state"] for check in told["checks"]}
    assert states["bootstrap"] == "failed"
    assert {"name", "state", "detail", "remedy"} == told["checks"][0].keys()
