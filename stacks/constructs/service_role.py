"""A role that one AWS service assumes for one resource of this account."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_cdk import Aws, aws_iam
from constructs import Construct

from cdclake.stacks.constructs.grant import Grant


class ServiceRole(Construct):
    """Role with inline statements; never a managed policy.

    Conditions on source account and ARN prevent the confused deputy problem: the service cannot
    assume the role for another account's resource. `for_arn` is the source ARN without
    `arn:<partition>:`, and may end in `*`; Lambda sends no source ARN, so its roles have none.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        service: str,
        for_arn: str | None = None,
        statements: Sequence[Grant | aws_iam.PolicyStatement],
    ) -> None:
        super().__init__(scope, construct_id)
        trusted = aws_iam.ServicePrincipal(
            f"{service}.amazonaws.com", conditions=None if for_arn is None else only_for(for_arn)
        )
        grants = [each for each in statements if isinstance(each, Grant)]
        plain = [each for each in statements if not isinstance(each, Grant)]
        policy = aws_iam.PolicyDocument(
            statements=[*plain, *(grant.statement() for grant in grants)]
        )
        role = aws_iam.Role(self, "Role", assumed_by=trusted, inline_policies={"Own": policy})
        for grant in grants:
            grant.accept_wildcards(role)
        self.arn = role.role_arn
        self.users: list[Construct] = []  # created only after all rights of the role
        self.tables = [grant.tables for grant in grants if grant.tables is not None]


def only_for(arn: str) -> dict[str, Any]:
    """Return conditions that restrict a service to matching resources of this account."""
    return {
        "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
        "ArnLike": {"aws:SourceArn": f"arn:{Aws.PARTITION}:{arn}"},
    }
