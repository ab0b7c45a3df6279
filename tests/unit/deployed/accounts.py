"""Answers of an account that is ready for a deployment; a test changes one of them.

They have the shape of botocore's models; a call that no answer is given for fails the test.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from botocore.validate import validate_parameters

from cdclake.config.deployment import Deployment, load_deployment
from tests.unit.config.pipelines import VALID

Answers = dict[str, Any]
ZONES = [("eu-west-1a", "euw1-az2"), ("eu-west-1b", "euw1-az1"), ("eu-west-1c", "euw1-az3")]
SERVICES = ("glue", "kms", "logs", "monitoring", "secretsmanager", "sts")


def refused(code: str, message: str = "m") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "Operation")


def endpoint(service: str, zones: list[str]) -> dict[str, Any]:
    return {"ServiceName": f"com.amazonaws.eu-west-1.{service}", "AvailabilityZones": zones}


def orderable(version: str, zones: list[str]) -> dict[str, Any]:
    return {"EngineVersion": version, "AvailabilityZones": [{"Name": zone} for zone in zones]}


def by_iam(principal: str) -> dict[str, Any]:
    default = {"Principal": {"DataLakePrincipalIdentifier": principal}, "Permissions": ["ALL"]}
    return {"DataLakeSettings": {"CreateTableDefaultPermissions": [default]}}


def quotas(value: float) -> Callable[[dict[str, Any]], dict[str, Any]]:
    names = {
        "lambda": "Concurrent executions",
        "kafka": "Number of brokers per account",
        "glue": "Max task DPUs per account",
    }

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        return {"Quotas": [{"QuotaName": names[asked["ServiceCode"]], "Value": value}]}

    return answer


def parameters(modifiable: bool = True, wal_mb: str = "-1-2147483647") -> dict[str, Any]:
    allowed = {
        "rds.logical_replication": "0,1", "rds.force_ssl": "0,1", "max_slot_wal_keep_size": wal_mb
    }  # fmt: skip
    known = [
        {"ParameterName": name, "AllowedValues": values, "IsModifiable": modifiable}
        for name, values in allowed.items()
    ]
    return {"EngineDefaults": {"DBParameterGroupFamily": "postgres17", "Parameters": known}}


ALL_ZONES = [name for name, _ in ZONES]
ROLE = {"Path": "/", "RoleName": "r", "RoleId": "i" * 16, "Arn": "a" * 20, "CreateDate": "2026"}
GOOD: Answers = {
    "GetCallerIdentity": {"Account": "111122223333", "Arn": "arn:aws:iam::111122223333:user/me"},
    "GetParameter": {"Parameter": {"Value": "21"}},
    "DescribeAvailabilityZones": {
        "AvailabilityZones": [{"ZoneName": name, "ZoneId": zone} for name, zone in ZONES]
    },
    "DescribeVpcEndpointServices": {
        "ServiceDetails": [endpoint(service, ALL_ZONES) for service in SERVICES]
    },
    "DescribeOrderableDBInstanceOptions": {
        "OrderableDBInstanceOptions": [orderable("16.9", []), orderable("17.6", ALL_ZONES)]
    },
    "DescribeEngineDefaultParameters": parameters(),
    "ListKafkaVersions": {"KafkaVersions": [{"Version": "3.9.x.kraft", "Status": "ACTIVE"}]},
    "GetRole": {"Role": {**ROLE, "CreateDate": datetime(2026, 1, 1, tzinfo=UTC)}},
    "ListServiceQuotas": quotas(1000),
    "GetDataLakeSettings": by_iam("IAM_ALLOWED_PRINCIPALS"),
    "DescribeStacks": refused("ValidationError", "Stack with id x does not exist"),
    "GetDatabase": refused("EntityNotFoundException"),
    "DescribeSecret": refused("ResourceNotFoundException"),
    "DescribeLogGroups": {"logGroups": []},
    "ListClustersV2": {"ClusterInfoList": [{"ClusterName": "shop-of-others"}]},
    "DescribeStackResources": refused("ValidationError", "Stack with id x does not exist"),
}


def answer_calls(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Answer every call of AWS; return the answers by operation."""
    given = dict(GOOD)

    def call(client: Any, operation: str, asked: dict[str, Any]) -> Any:
        answer = given[operation]
        if isinstance(answer, Exception):
            code = answer.response["Error"]["Code"]  # type: ignore[attr-defined]
            raise client.exceptions.from_code(code)(answer.response, operation)  # type: ignore[attr-defined]
        told = answer(asked) if callable(answer) else answer
        shape = client.meta.service_model.operation_model(operation).output_shape
        if told:
            validate_parameters(told, shape)
        return told

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    return given


def deployment(folder: Path, more: str = "") -> Deployment:
    file = folder / "p.yaml"
    file.write_text(VALID + more)
    return load_deployment(file)
