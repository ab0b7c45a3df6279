"""Checks of an account that depend on the region, and on the sizes that the file declares."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.config import regions
from cdclake.deployed.preflight import preflight
from tests.unit.config.test_aws_problems import EXISTING_SOURCE
from tests.unit.deployed.accounts import Answers, answer_calls, deployment, quotas


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Answers of AWS by operation; a test changes one of them."""
    return answer_calls(monkeypatch)


def test_a_region_of_china_fails(
    answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regions, "_CHINA", "eu-west-")
    [region] = [check for check in preflight(deployment(tmp_path)) if check.name == "region"]
    assert (region.state, "outside of China" in region.remedy) == ("failed", True)


@pytest.mark.parametrize("source", ["create: {}", "existing"])
def test_the_certificates_of_a_created_database_must_be_packed(
    answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setattr(regions, "certified_regions", lambda: {"eu-north-1"})
    existing = f"existing: {EXISTING_SOURCE}"
    more = f"aws: {{source: {{{existing if source == 'existing' else source}}}}}\n"
    [region] = [c for c in preflight(deployment(tmp_path, more)) if c.name == "region"]
    if source == "existing":  # the server may be in another region
        assert region.state == "ok"
    else:
        assert "certificates of RDS in eu-west-1" in region.detail


def test_certified_regions_are_those_of_the_packed_file() -> None:
    found = regions.certified_regions()
    assert {"eu-west-1", "us-east-1", "ap-southeast-4"} <= found
    assert not {"us-gov-west-1", "il-central-1", ""} & found


@pytest.mark.parametrize(
    ("subnets", "state"), [("0a, subnet-0b", "ok"), ("0a, subnet-0b, subnet-0c", "failed")]
)
def test_the_subnets_of_an_existing_network_are_counted(
    answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subnets: str, state: str
) -> None:
    monkeypatch.setattr(regions, "_TWO_SUBNETS", ("eu-west-1",))
    network = f"{{existing: {{vpc_id: vpc-0a, subnet_ids: [subnet-{subnets}]}}}}"
    found = preflight(deployment(tmp_path, f"aws: {{network: {network}}}\n"))
    assert [check.state for check in found if check.name == "region"] == [state]


@pytest.mark.parametrize(
    ("sizes", "quota", "needed"),
    [
        ("{jobs: {batch: {worker: G.8X, workers: 100}}}", "glue", "1603 are needed"),
        ("{kafka: {create: {brokers_per_zone: 5}}}", "kafka", "15 are needed"),
    ],
)
def test_quotas_are_those_of_the_files_sizes(
    answers: Answers, tmp_path: Path, sizes: str, quota: str, needed: str
) -> None:
    answers["ListServiceQuotas"] = quotas(1000 if quota == "glue" else 14)
    found = preflight(deployment(tmp_path, f"aws: {sizes}\n"))
    [failed] = [check for check in found if check.name == f"quota: {quota}"]
    assert needed in failed.detail


def test_endpoints_of_a_web_server_are_needed_too(answers: Answers, tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(given: dict[str, list[str]]) -> dict[str, list[object]]:
        asked.extend(given["ServiceNames"])
        return {"ServiceDetails": []}

    answers["DescribeVpcEndpointServices"] = answer
    found = preflight(deployment(tmp_path, "weblogs: {request: {route: day, images: build}}\n"))
    [check] = [check for check in found if check.name == "endpoints"]
    assert check.state == "failed"
    assert {"com.amazonaws.eu-west-1.ecr.api", "com.amazonaws.eu-west-1.glue"} <= {*asked}
