"""Texts that ask the owners of existing parts for what this deployment needs from them."""

from __future__ import annotations

from cdclake.config.aws_model import ExistingSource
from cdclake.config.kafka_model import IAM_PORT, ExistingKafka
from cdclake.debezium.topics import durable_settings
from cdclake.stacks.constructs.kafka_cluster import FIREHOSE_ACTIONS


def source_request(existing: ExistingSource, groups: str) -> str:
    """Return what the owner of an existing source database must set up."""
    return (
        f"{existing.security_group} must admit {groups} on port {existing.port}; the server"
        " needs logical replication (rds.logical_replication = 1, effective after a restart),"
        " TLS, and a WAL limit for inactive slots (max_slot_wal_keep_size,"
        " unlimited by default); its certificate must be of an authority of RDS: this deployment"
        " trusts no other; a customer key of the secret needs a policy that itself allows"
        " kms:Decrypt through Secrets Manager: one that leaves it to IAM is not enough"
    )


def kafka_request(existing: ExistingKafka, groups: str) -> str:
    """Return what the owner of an existing Kafka cluster must set up."""
    return (
        f"{existing.security_group} must admit {groups} on port {IAM_PORT}; the cluster needs"
        " IAM access control, Kafka 3.6 or newer, and a message.max.bytes that fits large rows"
        f"{_durability(existing)}"
    )


def _durability(existing: ExistingKafka) -> str:
    if existing.express:
        return ""
    settings = ", ".join(
        f"{key}={value}" for key, value in durable_settings(existing.replicas).items()
    )
    return (
        f"; the pipeline's topics are created with {settings}, which must remain: otherwise a"
        " failed broker may lose changes that Kafka has acknowledged, and nothing notices it"
    )


def firehose_request(existing: ExistingKafka) -> str:
    """Return what the owner of an existing Kafka cluster must set up for Firehose."""
    return (
        f"{existing.cluster_arn} needs multi-VPC private connectivity with IAM, and a"
        f" cluster policy that allows firehose.amazonaws.com {', '.join(FIREHOSE_ACTIONS)};"
        " then set `aws: {private_connectivity: on}`"
    )
