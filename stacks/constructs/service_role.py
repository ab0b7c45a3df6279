"""A role that one AWS service takes on for one thing of this account."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_cdk import Aws, aws_iam
from constructs import Construct

from cdclake.stacks.constructs.grant import Grant


class ServiceRole(Construct):
    """A role with statements of our own; never a managed policy.

    Conditions on the caller's account and resource keep the service from being used by somebody
    else's (the confused deputy). `for_arn` is what follows `arn:<partition>:`, and may end in `*`;
    Lambda alone says nothing of its caller when it takes on a role, and has none.
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


def only_for(arn: str) -> dict[str, Any]:
    """Conditions under which a service acts for such a resource of this account alone."""
    return {
        "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
        "ArnLike": {"aws:SourceArn": f"arn:{Aws.PARTITION}:{arn}"},
    }
