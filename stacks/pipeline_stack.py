"""What every stack of a deployment has in common: its name, its tags, its protection."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack, Tags
from constructs import Construct

from cdclake.config.deployment import Deployment


class PipelineStack(Stack):
    """A stack called `<pipeline>-<environment>-<part>`, in whatever account is deployed to."""

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
        """Print after this stack's deployment what the owner of something existing must see to."""
        CfnOutput(self, name, value=what, description="Action required from the owner")
