"""Probe connector on MSK Connect: create it, read what its log answers, delete it.

It has the deployment's plugin, worker configuration and connector settings, and an address for the
database where nothing listens: it fails without reaching the source, so no slot is made.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import ClientError

from cdclake import naming
from cdclake.check import Check, passed
from cdclake.config import versions
from cdclake.config.deployment import Deployment
from cdclake.connectors.find_connector import find_connector
from cdclake.debezium.deployed_connector import deployed_config
from cdclake.deployed.aws_calls import explained
from cdclake.deployed.connector_answers import connector_answers
from cdclake.deployed.stack_lookup import found_stack
from cdclake.errors import ComponentFailed, NotRunning

MAX_MINUTES = 45  # of its existence, for which it is paid
_CREATING_S, _DELETING_S, _LOGGING_S = 30 * 60.0, 14 * 60.0, 60.0
_POLL_S = 10.0
_NOWHERE = ("127.0.0.1", 1)
_HEAP_BYTES = 2 * 1024**3
_OVERRIDE = {"producer.override.linger.ms": "20"}
_ENDED = {"RUNNING", "FAILED"}


def probe_connector(deployment: Deployment) -> list[Check]:
    """Run the connector until it fails or runs; return what it answers, and that it is deleted.

    Raises NotRunning if the stack `cdc` is not deployed, and ComponentFailed if MSK Connect
    refuses the connector.
    """
    probe = _Probe(deployment)
    checks: list[Check] = []
    if probe.delete():
        checks.append(passed("connector of an earlier probe", "deleted"))
    try:
        reason = probe.run()
        checks += connector_answers(f"{probe.log()}\n{reason}")
    finally:
        deleted = probe.delete()
    return [*checks, passed("connector deleted", deleted)]


def probe_settings(deployment: Deployment, region: str) -> dict[str, str]:
    """Return the deployed connector's settings with another address and one override."""
    settings = deployed_config(
        deployment.plan,
        deployment.prefix,
        source=_NOWHERE,
        login=naming.login_secret(deployment.prefix),
        epoch=deployment.aws.connect.epoch,
        heap_bytes=_HEAP_BYTES,
        region=region,
    )
    return {**settings, **_OVERRIDE}


@dataclass(frozen=True, slots=True)
class _Found:
    arn: str
    state: str


class _Probe:
    """The connector of this name, if there is one."""

    def __init__(self, deployment: Deployment) -> None:
        self.name = naming.probe_connector_name(deployment.prefix)
        self._deployment = deployment
        with explained(self.name, "reach MSK Connect for"):
            self._connect, self._logs = boto3.client("kafkaconnect"), boto3.client("logs")
        self._outputs = {
            **_outputs(f"{deployment.prefix}-network"),
            **_outputs(f"{deployment.prefix}-cdc"),
        }
        self._began_ms = int(time.time() * 1000)
        self._created = ""  # its ARN

    def run(self) -> str:
        """Create the connector and await its end; return the reason that MSK Connect states."""
        with explained(self.name, "create the connector"):
            self._created = self._connect.create_connector(**self._request())["connectorArn"]
        end = time.monotonic() + _CREATING_S
        while time.monotonic() < end:
            with explained(self.name, "follow the connector"):
                told = self._connect.describe_connector(connectorArn=self._created)
            if told["connectorState"] in _ENDED:
                return str(told.get("stateDescription", {}).get("message", ""))
            time.sleep(_POLL_S)
        return f"the connector was neither running nor failed after {_CREATING_S / 60:.0f} minutes"

    def log(self) -> str:
        """Return its log; wait until it has lines and no new ones: they arrive after the state."""
        end = time.monotonic() + _LOGGING_S
        group = naming.probe_connector_log(self._deployment.prefix)
        pages = self._logs.get_paginator("filter_log_events")
        lines: list[str] = []
        while True:
            before = lines
            with explained(group, "read the log"):
                lines = [
                    event["message"]
                    for page in pages.paginate(logGroupName=group, startTime=self._began_ms)
                    for event in page["events"]
                ]
            if (lines and lines == before) or time.monotonic() > end:
                return "\n".join(lines)
            time.sleep(_POLL_S)

    def delete(self) -> str:
        """Delete the connector if it exists, and wait until it is gone; return its ARN.

        MSK Connect may refuse while the connector changes, so a refusal is retried.
        """
        found = self._find()
        if found is None:
            return ""
        end, refusal = time.monotonic() + _DELETING_S, ""
        while (here := self._find()) is not None:
            if time.monotonic() > end:
                raise ComponentFailed(
                    f"{self.name} is still {here.state}, and costs money{refusal}",
                    f"run `aws kafkaconnect delete-connector --connector-arn {here.arn}`",
                    self.name,
                )
            if here.state != "DELETING":
                try:
                    self._connect.delete_connector(connectorArn=here.arn)
                except ClientError as error:
                    refusal = f": {error.response['Error'].get('Message', error)}"
            time.sleep(_POLL_S)
        return found.arn

    def _find(self) -> _Found | None:
        return self._described() if self._created else self._listed()

    def _described(self) -> _Found | None:
        """Return the connector that this probe created, which a list may not have yet."""
        with explained(self.name, "look for"):
            try:
                told = self._connect.describe_connector(connectorArn=self._created)
            except ClientError as error:
                if error.response["Error"]["Code"] != "NotFoundException":
                    raise
                return None
        return _Found(self._created, told["connectorState"])

    def _listed(self) -> _Found | None:
        with explained(self.name, "look for"):
            found = find_connector(self._connect, self.name)
        return _Found(found["connectorArn"], found["connectorState"]) if found else None

    def _request(self) -> dict[str, Any]:
        return create_request(
            self.name,
            probe_settings(self._deployment, self._connect.meta.region_name),
            naming.probe_connector_log(self._deployment.prefix),
            {**self._outputs, **self._revisions()},
        )

    def _revisions(self) -> dict[str, Any]:
        with explained(self.name, "read the plugin of"):
            plugin = self._connect.describe_custom_plugin(customPluginArn=self._outputs["Plugin"])
            worker = self._connect.describe_worker_configuration(
                workerConfigurationArn=self._outputs["Worker"]
            )
        return {
            "PluginRevision": plugin["latestRevision"]["revision"],
            "WorkerRevision": worker["latestRevision"]["revision"],
        }


def create_request(
    name: str, settings: Mapping[str, str], log: str, outputs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the request that creates the connector like the deployment's, in the smallest size."""
    vpc = {
        "subnets": outputs["Subnets"].split(","),
        "securityGroups": [outputs["SecurityGroup"]],
    }
    plugin = {"customPluginArn": outputs["Plugin"], "revision": outputs["PluginRevision"]}
    return {
        "connectorName": name,
        "connectorDescription": "Made and deleted by `cdclake doctor --probe-connector`",
        "connectorConfiguration": dict(settings),
        "capacity": {"provisionedCapacity": {"mcuCount": 1, "workerCount": 1}},
        "kafkaConnectVersion": versions.KAFKA_CONNECT,
        "serviceExecutionRoleArn": outputs["Role"],
        "kafkaCluster": {
            "apacheKafkaCluster": {"bootstrapServers": outputs["Brokers"], "vpc": vpc}
        },
        "kafkaClusterClientAuthentication": {"authenticationType": "IAM"},
        "kafkaClusterEncryptionInTransit": {"encryptionType": "TLS"},
        "plugins": [{"customPlugin": plugin}],
        "workerConfiguration": {
            "workerConfigurationArn": outputs["Worker"],
            "revision": outputs["WorkerRevision"],
        },
        "logDelivery": {
            "workerLogDelivery": {"cloudWatchLogs": {"enabled": True, "logGroup": log}}
        },
    }


def _outputs(stack: str) -> dict[str, str]:
    """Return what the stack describes of the connector, by name."""
    with explained(stack, "read the outputs of"):
        found = found_stack(stack) or {}
    outputs = {
        each["OutputKey"].removeprefix(naming.PROBE_OUTPUTS): each["OutputValue"]
        for each in found.get("Outputs", [])
        if each["OutputKey"].startswith(naming.PROBE_OUTPUTS)
    }
    if not outputs:
        raise NotRunning(
            f"no stack {stack} with what the connector needs in this account and region",
            "deploy it, with `aws: {connector: off}` if the connector must not run yet",
        )
    return outputs
