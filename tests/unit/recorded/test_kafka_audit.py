"""Permissions in IAM's terms that a role needs by the broker's audit log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recorded_requests.kafka_audit import AuditedKafka
from tests.recorded_requests.permissions import Needed


def line(what: str, request: str, user: str = "operate") -> str:
    operation, _, resource = what.partition(" ")
    return (
        f"2026-11-26 21:00:00,000 DEBUG Principal = User:{user} is Allowed operation = {operation}"
        f" from host = 127.0.0.1 on resource = {resource} for request = {request} with"
        " resourceRefCount = 1 based on rule DefaultAllow (kafka.authorizer.logger)\n"
    )


def needed(folder: Path, *lines: str) -> set[Needed]:
    log = folder / "kafka.log"
    log.write_text("".join(lines))
    return AuditedKafka(log).needed("operate")


@pytest.mark.parametrize(
    ("what", "request_", "action", "on"),
    [
        ("READ Topic:LITERAL:t", "FETCH", "ReadData", "topic/t"),
        ("WRITE Topic:LITERAL:t", "PRODUCE", "WriteData", "topic/t"),
        ("DESCRIBE Topic:LITERAL:t", "LIST_OFFSETS", "DescribeTopic", "topic/t"),
        ("READ Group:LITERAL:g", "JOIN_GROUP", "AlterGroup", "group/g"),
        ("IDEMPOTENT_WRITE Cluster:LITERAL:kafka-cluster", "INIT_PRODUCER_ID",
         "WriteDataIdempotently", "cluster"),
        ("ALTER Topic:LITERAL:t", "CREATE_PARTITIONS", "alter of topic", "topic/t"),
    ],
)  # fmt: skip
def test_an_operation_is_the_action_that_msk_has_for_it(tmp_path, what, request_, action, on):
    connects = Needed("kafka-cluster:Connect", "cluster")
    assert needed(tmp_path, line(what, request_)) == {
        connects,
        Needed(f"kafka-cluster:{action}", on),
    }


def test_a_list_of_all_topics_needs_only_those_that_are_used(tmp_path):
    listed = [line(f"DESCRIBE Topic:LITERAL:{topic}", "METADATA") for topic in ("t", "other")]
    found = needed(tmp_path, *listed, line("READ Topic:LITERAL:t", "FETCH"))
    assert {each.on for each in found} == {"cluster", "topic/t"}
    assert Needed("kafka-cluster:DescribeTopic", "topic/t") in found


def test_requests_of_another_role_are_not_its_own(tmp_path):
    assert needed(tmp_path, line("READ Topic:LITERAL:t", "FETCH", user="connector")) == set()


def test_creation_is_decided_by_topic(tmp_path):
    created = line("CREATE Cluster:LITERAL:kafka-cluster", "CREATE_TOPICS")
    assert needed(tmp_path, created) == {Needed("kafka-cluster:Connect", "cluster")}
