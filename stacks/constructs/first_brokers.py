"""Brokers of a cluster as they are when a connector is created."""

from __future__ import annotations

from collections.abc import Sequence

from constructs import Construct

from cdclake.stacks.constructs.custom_resource import CdclakeResource
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant


def first_brokers(
    scope: Construct, *, cluster_arn: str, grants: Sequence[Grant], context: DeploymentContext
) -> str:
    """Look up the brokers once, at creation: a new list would replace the connector.

    The stream's list follows the cluster's size, so it cannot be used. Kafka's clients discover
    brokers that were added later.
    """
    found = CdclakeResource(
        scope,
        "FirstBrokers",
        what="Brokers",
        properties={"ClusterArn": cluster_arn},
        grants=grants,
        context=context,
    )
    return found.resource.get_att_string("Brokers")
