"""Look-ups of fixed names: each by itself, and the topics in an existing Kafka."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import EndpointConnectionError
from botocore.validate import validate_parameters

from cdclake.check import Check
from cdclake.config.deployment import load_deployment, stack_description
from cdclake.deployed.fixed_names import check_names
from tests.unit.config.pipelines import VALID

Answers = dict[str, Any]
Look = Callable[..., list[Check]]
CLUSTER = "arn:aws:kafka:eu-west-1:111122223333:cluster/bus/0a1b2c3d-0a1b-4c5d-8e9f-0a1b2c3d4e5f-1"
EXISTING = (
    f"aws: {{kafka: {{existing: {{cluster_arn: '{CLUSTER}', bootstrap_brokers: 'b:9098',"
    " security_group: sg-0a}}}\n"
)
DENIED = ("AccessDeniedException", "not authorized to perform: x")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Answers of AWS by operation, where nothing has the names; text is the code of an error."""
    given: Answers = {
        "DescribeStacks": ("ValidationError", "Stack with id x does not exist"),
        "GetDatabase": ("EntityNotFoundException", "m"),
        "DescribeSecret": ("ResourceNotFoundException", "m"),
        "ListClustersV2": {"ClusterInfoList": []},
        "DescribeLogGroups": {"logGroups": []},
    }

    def call(client: Any, operation: str, asked: dict[str, Any]) -> Any:
        answer = given[operation](asked) if callable(given[operation]) else given[operation]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, tuple):
            code, message = answer
            error = {"Error": {"Code": code, "Message": message}}
            raise client.exceptions.from_code(code)(error, operation)
        shape = client.meta.service_model.operation_model(operation).output_shape
        validate_parameters(answer, shape)
        return answer

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    return given


@pytest.fixture
def look(answers: Answers, tmp_path: Path) -> Look:
    """Return the results for a pipeline file with these lines."""
    del answers

    def run(more: str = "") -> list[Check]:
        file = tmp_path / "p.yaml"
        file.write_text(VALID + more)
        return [*check_names(load_deployment(file))]

    return run


def states(found: list[Check]) -> list[tuple[str, str]]:
    return [(check.name, check.state) for check in found]


@pytest.mark.parametrize(
    ("name", "environment", "deployed", "owner"),
    [
        ("shop", "prod", stack_description("shop", "buckets"), None),
        ("shop", "prod", "stack of another tool", None),
        ("shop", "prod", stack_description("shop-prod", "b"), "shop-prod without an environment"),
        ("shop-prod", None, stack_description("shop", "buckets"), "shop in environment prod"),
    ],
)
def test_stacks_of_another_pipeline_with_the_same_prefix_fail(
    answers: Answers,
    tmp_path: Path,
    name: str,
    environment: str | None,
    deployed: str,
    owner: str | None,
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(VALID.replace("name: shop", f"name: {name}") + "environments: {prod: {}}\n")
    stack = {
        "StackName": "shop-prod-lake",
        "CreationTime": datetime(2026, 1, 1, tzinfo=UTC),
        "StackStatus": "CREATE_COMPLETE",
        "Description": deployed,
    }
    answers["DescribeStacks"] = {"Stacks": [stack]}
    [check] = check_names(load_deployment(file, environment))
    if owner is None:
        assert (check.state, check.detail) == ("ok", "shop-prod is deployed already")
    else:
        assert check.state == "failed"
        assert check.detail == f"the stacks shop-prod-* are those of the pipeline {owner}"
        assert "choose another `name:` or environment" in check.remedy


@pytest.mark.parametrize(
    "refusal", [DENIED, EndpointConnectionError(endpoint_url="https://kafka.eu-west-1")]
)
def test_a_refused_look_up_does_not_hide_the_others(
    answers: Answers, look: Look, refusal: Any
) -> None:
    answers["ListClustersV2"] = refusal
    answers["DescribeSecret"] = {"Name": "shop/mask"}
    answers["DescribeLogGroups"] = {"logGroups": [{"logGroupName": "/aws-glue/jobs/shop/x/y"}]}
    found = look()
    assert states(found) == [
        ("names", "failed"), ("names", "failed"), ("names", "skipped"), ("names", "failed"),
    ]  # fmt: skip
    assert "kafka" in found[2].detail or "AccessDeniedException" in found[2].detail


def test_a_refused_look_up_does_not_pass(answers: Answers, look: Look) -> None:
    answers["GetDatabase"] = DENIED
    assert states(look()) == [("names", "skipped")]


def test_topics_in_an_existing_kafka_need_another_name(answers: Answers, look: Look) -> None:
    def topics(asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["ClusterArn"] == CLUSTER
        first = {"Topics": [{"TopicName": "__cdclake-offsets.shop"}], "NextToken": "n"}
        names = ("shop.public.orders", "shop.public.items", "shop-trial.public.orders")
        return first if "NextToken" not in asked else {"Topics": [{"TopicName": n} for n in names]}

    answers["ListTopics"] = topics
    [found] = look(EXISTING)
    assert found.state == "failed"
    assert "2 of the pipeline's topics: __cdclake-offsets.shop, shop.public.orders" in found.detail
    assert "another `name:`" in found.remedy and "name:` or environment" not in found.remedy


def test_topics_of_others_in_an_existing_kafka_are_free(answers: Answers, look: Look) -> None:
    answers["ListTopics"] = {"Topics": [{"TopicName": "shop-trial.public.orders"}]}
    assert states(look(EXISTING)) == [("names", "ok")]
