"""Every stack of one deployment, in the order in which one needs the other."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from cdclake.config.deployment import Deployment
from stacks.network_stack import NetworkStack
from stacks.source_stack import SourceStack
from stacks.streaming_stack import StreamingStack


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacks:
    """The stacks of one deployment."""

    network: NetworkStack
    source: SourceStack
    streaming: StreamingStack


def add_stacks(app: App, deployment: Deployment) -> Stacks:
    """Add the deployment's stacks to the app."""
    network = NetworkStack(app, deployment)
    return Stacks(
        network=network,
        source=SourceStack(app, deployment, network=network),
        streaming=StreamingStack(app, deployment, network=network),
    )


def check_security(app: App) -> None:
    """Have cdk-nag's AwsSolutions rules look at every resource: a finding makes synth fail.

    What is right as it is stands beside its resource, with the reason (`constructs.accepted`).
    """
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
