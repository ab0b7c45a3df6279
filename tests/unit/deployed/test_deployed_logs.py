"""Log groups that `cdclake logs --target aws` reads, and deployments without jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake import naming
from cdclake.config.deployment import load_deployment
from cdclake.deployed.aws_jobs import DeployedJob
from cdclake.deployed.deployed_lake import DeployedLake
from cdclake.deployed.deployed_logs import log_groups
from cdclake.errors import NotRunning

SOURCE = """\
source: {database: shop}
tables:
  public.orders: {key: [id], columns: {id: int}, delivery: firehose}
"""
PUTS = """\
version: 1
name: shop
environments: {prod: {}}
puts:
  clicks: {columns: {id: int}}
  visits: {source: kinesis, columns: {id: int}}
"""
OF_PUTS = [
    "/aws/kinesisfirehose/shop-prod-clicks", "/aws/lambda/shop-prod-clicks",
    "/aws/kinesisfirehose/shop-prod-visits", "/aws/lambda/shop-prod-visits",
]  # fmt: skip


def groups_of(folder: Path, text: str) -> dict[str, list[str]]:
    file = folder / "pipeline.yaml"
    file.write_text(text)
    return log_groups(load_deployment(file, "prod"))


def test_put_tables_alone_have_only_firehose_and_its_functions(tmp_path: Path) -> None:
    assert groups_of(tmp_path, PUTS) == {"firehose": OF_PUTS}


def test_streams_of_tables_share_one_log_and_one_function(tmp_path: Path) -> None:
    groups = groups_of(tmp_path, PUTS + SOURCE)
    shared = ["/aws/kinesisfirehose/shop-prod", "/aws/lambda/shop-prod"]
    assert groups["firehose"] == [*shared, *OF_PUTS]
    assert {"connect", "kafka", "stream", "apply_changes"} <= groups.keys()


def test_a_deployment_without_firehose_has_no_such_component(tmp_path: Path) -> None:
    text = "version: 1\nname: shop\nenvironments: {prod: {}}\n" + SOURCE
    assert "firehose" not in groups_of(tmp_path, text.replace(", delivery: firehose", ""))


def test_a_deployment_of_put_tables_has_no_job_to_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    file = tmp_path / "pipeline.yaml"
    file.write_text(PUTS)
    lake, job = DeployedLake(file, "prod"), DeployedJob(file, "prod", naming.VERIFY_JOB)
    for ask in (lambda: lake.arguments, lambda: job.run([])):
        with pytest.raises(NotRunning, match="shop-prod has no jobs") as refused:
            ask()
        assert "cdclake logs --target aws" in refused.value.remedy
