"""Preparation of the source for the connector, undone when the stack is deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from aws_cdk import CustomResource
from constructs import Construct

from cdclake import naming
from cdclake.stacks.constructs.custom_resource import awaited_for
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.function import LambdaFunction
from cdclake.stacks.constructs.grant import Grant
from cdclake.stacks.constructs.lake_bucket import BucketReference
from cdclake.stacks.constructs.relation_records import keeps_records

_TIMEOUT_S = 600  # long enough to wait for locks of long transactions
_MEMORY_MB = 512


class Preparation(LambdaFunction):
    """`lambda/prepare_source` in the VPC, invoked when its zip changes: plan or code.

    Also when `login_version` changes, after which it sets the role's password from its secret
    again, or `epoch`, after which it also records the source's relations again.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        file: Path,
        digest: str,
        environment: Mapping[str, str],
        login_version: int,
        epoch: int,
        grants: Sequence[Grant],
        security_group: str,
        state: BucketReference,
        context: DeploymentContext,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            module="prepare_source",
            code=file,
            environment={**environment, "BUCKET": state.name},
            grants=[*grants, *keeps_records(state, context.key_arn, naming.FORMER_RELATIONS)],
            timeout_s=_TIMEOUT_S,
            memory_mb=_MEMORY_MB,
            security_group=security_group,
            context=context,
        )
        CustomResource(
            self,
            "Resource",
            service_token=self.arn,
            resource_type="Custom::CdclakeSource",
            properties={
                "Content": digest,
                "LoginVersion": str(login_version),
                "Epoch": str(epoch),
                **environment,
            },
            service_timeout=awaited_for(_TIMEOUT_S),
        )
