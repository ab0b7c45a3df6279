"""Base class of a deployment's stacks: name, tags and termination protection."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack, Tags
from constructs import Construct

from cdclake.config.deployment import Deployment


class PipelineStack(Stack):
    """A stack called `<pipeline>-<environment>-<part>`, independent of account and region."""

    def __init__(self, scope: Construct, deployment: Deployment, part: str, purpose: str) -> None:
        self.deployment = deployment
        name = f"{deployment.prefix}-{part}"
        super().__init__(
            scope,
            name,
            stack_name=name,
            description=f"cdclake pipeline {deployment.plan.name}: {purpose}",
            termination_protection=deployment.aws.protect,
            analytics_reporting=False,
        )
        Tags.of(self).add("cdclake:pipeline", deployment.plan.name)
        if deployment.environment is not None:
            Tags.of(self).add("cdclake:environment", deployment.environment)

    def ask_owner(self, name: str, what: str) -> None:
        """Add an output that asks the owner of an existing resource to do something."""
        CfnOutput(self, name, value=what, description="Action required from the owner")
