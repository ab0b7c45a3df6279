"""Base class of a deployment's stacks: name, tags and termination protection."""

from __future__ import annotations

from aws_cdk import CfnOutput, Environment, Stack, Tags, aws_iam
from constructs import Construct

from cdclake.config.deployment import (
    ENVIRONMENT_TAG,
    PIPELINE_TAG,
    Deployment,
    stack_description,
)


class PipelineStack(Stack):
    """A stack called `<pipeline>-<environment>-<part>`, independent of account and region."""

    def __init__(self, scope: Construct, deployment: Deployment, part: str, purpose: str) -> None:
        self.deployment = deployment
        name, region = f"{deployment.prefix}-{part}", deployment.aws.region
        super().__init__(
            scope,
            name,
            stack_name=name,
            description=stack_description(deployment.plan.name, purpose),
            termination_protection=deployment.aws.protect,
            analytics_reporting=False,
            # CloudFormation counts the bytes of a template; indented it has twice as many.
            suppress_template_indentation=True,
            env=None if region is None else Environment(region=region),
        )
        Tags.of(self).add(PIPELINE_TAG, deployment.plan.name)
        if deployment.environment is not None:
            Tags.of(self).add(ENVIRONMENT_TAG, deployment.environment)

        for key, value in deployment.aws.tags.items():
            Tags.of(self).add(key, value)
        if deployment.aws.permissions_boundary is not None:
            boundary = _managed_policy(self, deployment.aws.permissions_boundary)
            aws_iam.PermissionsBoundary.of(self).apply(boundary)

    def ask_owner(self, name: str, what: str) -> None:
        """Add an output that asks the owner of an existing resource to do something."""
        CfnOutput(self, name, value=what, description="Action required from the owner")


def _managed_policy(scope: Construct, spelled: str) -> aws_iam.IManagedPolicy:
    """Return the managed policy of this name in the account, or of this ARN."""
    construct_id, policy = "PermissionsBoundary", aws_iam.ManagedPolicy
    if spelled.startswith("arn:"):
        return policy.from_managed_policy_arn(scope, construct_id, spelled)
    return policy.from_managed_policy_name(scope, construct_id, spelled)
