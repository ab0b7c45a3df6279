"""What people reach: nothing by itself, and it runs what its digest says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.synth.deployments import Template

DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")


def web_servers_are_private(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Without a public address, without a shell, and back at the last version that ran."""
    if kind != "AWS::ECS::Service":
        return
    network = properties.get("NetworkConfiguration", {}).get("AwsvpcConfiguration", {})
    if network.get("AssignPublicIp") != "DISABLED":
        yield f"{kind} has public addresses"
    if properties.get("EnableExecuteCommand") is not False:
        yield f"{kind} lets people run commands in its tasks"
    breaker = properties.get("DeploymentConfiguration", {}).get("DeploymentCircuitBreaker", {})
    if breaker.get("Rollback") is not True:
        yield f"{kind} goes on with a version that does not start"


def containers_are_known(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Images by digest, logs somewhere, and nginx writes where it must only."""
    if kind != "AWS::ECS::TaskDefinition":
        return
    for container in properties["ContainerDefinitions"]:
        if not DIGEST.search(container["Image"]):
            yield f"{kind} runs whatever {container['Image']} is tomorrow"
        if "LogConfiguration" not in container:
            yield f"{kind} throws the log of {container['Name']} away"
        routes = "FirelensConfiguration" in container  # it writes what it includes
        if not routes and container.get("ReadonlyRootFilesystem") is not True:
            yield f"{kind} lets {container['Name']} write anywhere"
        if container.get("Privileged"):
            yield f"{kind} runs {container['Name']} with the host's rights"


def shards_are_ours(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Under our key, and for longer than a day: the least that Kinesis keeps."""
    if kind == "AWS::Kinesis::Stream":
        if properties.get("StreamEncryption", {}).get("EncryptionType") != "KMS":
            yield f"{kind} is not encrypted"
        if properties.get("RetentionPeriodHours", 24) <= 24:
            yield f"{kind} forgets what Firehose could not take within a day"
