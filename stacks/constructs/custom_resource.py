"""A custom resource: an action of `lambda/custom_resources`, with its own role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from aws_cdk import CustomResource, Duration
from constructs import Construct

from cdclake.stacks.bundles import build_function
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.function import LambdaFunction
from cdclake.stacks.constructs.grant import Grant

_MODULE = "custom_resources"
# Lambda repeats a call that failed twice, after one and two minutes (its developer guide, "How
# Lambda handles errors and retries with asynchronous invocation"). The last minute is for the
# answer.
_CALLS, _BETWEEN_CALLS_S, _ANSWER_S = 3, 180, 60


class CdclakeResource(Construct):
    """`Custom::Cdclake<what>`, one of the actions in `lambda/custom_resources`.

    The action runs at creation and whenever a property changes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        what: str,
        properties: Mapping[str, Any],
        grants: Sequence[Grant],
        context: DeploymentContext,
        timeout_s: int = 300,
        files: Mapping[str, bytes] = MappingProxyType({}),  # packed next to the action
    ) -> None:
        super().__init__(scope, construct_id)
        function = LambdaFunction(
            self,
            "Doer",
            module=_MODULE,
            code=build_function(_MODULE, files).path,
            environment={},
            grants=grants,
            timeout_s=timeout_s,
            context=context,
        )
        self.resource = CustomResource(
            self,
            "Resource",
            service_token=function.arn,
            resource_type=f"Custom::Cdclake{what}",
            properties=dict(properties),
            service_timeout=awaited_for(timeout_s),
        )
        function.role.users.append(self.resource)  # CloudFormation calls the function at once


def awaited_for(timeout_s: int) -> Duration:
    """Return how long CloudFormation waits for a function that always answers if it can.

    It is as long as Lambda calls the function: a call must not run next to that of the rollback.
    """
    return Duration.seconds(_CALLS * timeout_s + _BETWEEN_CALLS_S + _ANSWER_S)
