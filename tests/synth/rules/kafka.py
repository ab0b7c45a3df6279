"""Kafka and what connects the source to it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

from cdclake.debezium.connector import SALT
from tests.synth.deployments import Template
from tests.synth.rules.reading import walk

OFFSETS = "__cdclake-offsets."
REFERENCE = re.compile(r"[$][{]secretsmanager:[A-Za-z0-9/_-]+:[a-z]+[}]")


def safe_kafka(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """IAM over TLS only, also by private links."""
    if kind == "AWS::MSK::Cluster":
        if (ways := _ways_in(properties.get("ClientAuthentication"))) != {"Iam"}:
            yield f"{kind} lets clients in by {sorted(ways)}"
        linked = properties["BrokerNodeGroupInfo"].get("ConnectivityInfo")
        if linked is not None and _ways_in(linked) != {"Iam"}:
            yield f"{kind} lets services in by private links otherwise than by IAM"
        encryption = properties.get("EncryptionInfo", {})
        if encryption.get("EncryptionInTransit") != {"ClientBroker": "TLS", "InCluster": True}:
            yield f"{kind} takes unencrypted connections"
        if "EncryptionAtRest" not in encryption:
            yield f"{kind} is not encrypted with our key"
        if "ConfigurationInfo" not in properties:
            yield f"{kind} has MSK's own settings"


def known_settings(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """No topic makes itself, and no leader lacks what others have seen."""
    if kind != "AWS::MSK::Configuration":
        return
    lines = str(properties["ServerProperties"]).splitlines()
    needed = ["auto.create.topics.enable=false"]
    if any(line.startswith("min.insync.replicas") for line in lines):  # not MSK Express
        needed.append("unclean.leader.election.enable=false")
    for line in needed:
        if line not in lines:
            yield f"{kind} lacks {line}"


def lasting_kafka(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Require a cluster that can be upgraded, and no metrics that cost and nothing reads."""
    if kind != "AWS::MSK::Cluster":
        return
    if not str(properties["KafkaVersion"]).endswith(".kraft"):
        yield f"{kind} runs with ZooKeeper, which Kafka 4 does not have"
    if properties.get("EnhancedMonitoring", "DEFAULT") != "DEFAULT":
        yield f"{kind} pays for metrics that no alarm and no dashboard reads"


def _ways_in(settings: Any) -> set[str]:
    """How one may sign in."""
    return {path[-2] for path, value in walk(settings) if path[-1:] == ("Enabled",) and value}


def topics_as_locally(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Kafka must keep a record for longer than the stream may be away, and take large ones."""
    if kind != "AWS::MSK::Topic":
        return
    settings = json.loads(base64.b64decode(properties.get("Configs", "e30=")))
    if properties["PartitionCount"] != 1:
        yield f"{kind} parts a table's events"
    if properties["ReplicationFactor"] < 2:
        yield f"{kind} stands on one broker"
    if properties["TopicName"].startswith(OFFSETS):
        if settings.get("cleanup.policy") != "compact":
            yield f"{kind} forgets how far the connector has read"
    else:
        for name in ("retention.ms", "max.message.bytes"):
            if int(settings.get(name, 0)) <= 0:
                yield f"{kind} lacks {name}"
        if settings.get("cleanup.policy") != "delete":
            yield f"{kind} forgets changes"


def safe_connect(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """One worker that signs in by IAM over TLS, logs, and holds no password, only where it is."""
    if kind == "AWS::KafkaConnect::Connector":
        capacity = properties["Capacity"].get("ProvisionedCapacity", {})
        if capacity.get("WorkerCount") != 1:
            yield f"{kind} has not one worker: a slot has one reader"
        if properties["KafkaClusterClientAuthentication"]["AuthenticationType"] != "IAM":
            yield f"{kind} does not sign in"
        if properties["KafkaClusterEncryptionInTransit"]["EncryptionType"] != "TLS":
            yield f"{kind} is not encrypted on its way"
        if '"Enabled": true' not in json.dumps(properties.get("LogDelivery", {})):
            yield f"{kind} does not log"
        settings = properties["ConnectorConfiguration"]
        is_declared = not str(properties["ConnectorName"]).endswith("-source")
        yield from (_sink_is_safe if is_declared else _source_is_safe)(kind, settings)
    if kind == "AWS::KafkaConnect::WorkerConfiguration":
        text = json.dumps(properties["PropertiesFileContent"])
        is_sinks = properties["Description"] == "Worker of a sink"  # its offsets are in its group
        for setting in ("offset.storage.topic=", "config.providers="):
            if setting not in text and not is_sinks:
                yield f"{kind} lacks {setting}"


def _sink_is_safe(kind: str, settings: dict[str, Any]) -> Iterator[str]:
    """Its clients of Kafka sign in by IAM, over TLS."""
    if "iceberg.kafka.bootstrap.servers" in settings:
        if settings.get("iceberg.kafka.sasl.mechanism") != "AWS_MSK_IAM":
            yield f"{kind} has clients that do not sign in"
        if settings.get("iceberg.kafka.security.protocol") != "SASL_SSL":
            yield f"{kind} has clients without TLS"


def _source_is_safe(kind: str, settings: dict[str, Any]) -> Iterator[str]:
    if int(settings.get("max.queue.size.in.bytes", 0)) <= 0:
        yield f"{kind} bounds its queue by a count of rows, however large they are"
    last = settings.get("transforms", "").rpartition(",")[2]
    if settings.get(f"transforms.{last}.type") != "cdclake.connect.OversizedRecords":
        yield f"{kind} fails on a record that is too large for Kafka"
    if settings.get("message.prefix.exclude.list") != "(?s).*":
        yield f"{kind} hangs on a logical message, whose topic does not exist"
    if any(name.startswith(("producer.", "consumer.", "admin.")) for name in settings):
        yield f"{kind} overrides its clients' settings, which the worker may forbid"
    if not REFERENCE.fullmatch(str(settings.get("database.password"))):
        yield f"{kind} has a password, or none"
    if settings.get("database.sslmode") != "verify-full":
        yield f"{kind} does not check whom it talks to"
    if settings.get("config.action.reload") != "none":
        yield f"{kind} is restarted by its provider of secrets"
    if any(name.startswith(("column.mask.", "column.truncate.")) for name in settings):
        yield f"{kind} masks what PostgreSQL did not send, and shows the salt"
    if not REFERENCE.fullmatch(str(settings.get(SALT, settings.get("database.password")))):
        yield f"{kind} has a salt in the clear"


def named_by_content(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """What can only be set at creation is made anew before it goes, and needs another name."""
    fixed = {"AWS::KafkaConnect::CustomPlugin", "AWS::KafkaConnect::WorkerConfiguration"}
    if kind in fixed and not re.search(r"-[0-9a-f]{12}$", properties["Name"]):
        yield f"{kind} is not named by its content"
    if re.search(r"[0-9a-f]{10}", properties.get("ConnectorName", "")):
        yield f"{kind} is named by its content: by its name Connect keeps its offsets"
