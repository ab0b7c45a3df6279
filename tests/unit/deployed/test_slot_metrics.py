"""The WAL that `status --target aws` shows, by the metrics of RDS and of Aurora."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from cdclake.config.deployment import load_deployment
from cdclake.deployed.deployed_status import _slot
from tests.unit.config.pipelines import VALID

INSTANCE = {"DBInstanceIdentifier": "shop-source"}
WRITER = {"DBClusterIdentifier": "shop-source-cluster", "Role": "WRITER"}


def slot(tmp_path: Path, engine: str) -> Any:
    file = tmp_path / "p.yaml"
    file.write_text(VALID + f"aws: {{source: {{create: {{engine: {engine}}}}}}}\n")
    lake: Any = SimpleNamespace(deployment=load_deployment(file))
    return _slot(lake)


def publish(name: str, value: float, dimensions: dict[str, str]) -> None:
    datum = {
        "MetricName": name,
        "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
        "Value": value,
        "Timestamp": datetime.now(UTC) - timedelta(seconds=10),
    }
    boto3.client("cloudwatch").put_metric_data(Namespace="AWS/RDS", MetricData=[datum])


def test_slot_of_rds_has_a_limit(tmp_path: Path) -> None:
    publish("OldestLogicalReplicationSlotLag", 7, INSTANCE)
    assert slot(tmp_path, "rds") == {"wal_bytes": 7, "limit_bytes": 20 * 1024**3}


@pytest.mark.parametrize(("value", "retained"), [(7, 7), (-1, None)])
def test_slot_of_aurora_is_that_of_the_writer(
    tmp_path: Path, value: float, retained: int | None
) -> None:
    publish("TransactionLogsDiskUsage", value, WRITER)
    assert slot(tmp_path, "aurora") == {"wal_bytes": retained, "limit_bytes": None}
