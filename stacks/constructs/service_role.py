"""A role that one AWS service takes on for one thing of this account."""

from __future__ import annotations

from aws_cdk import Aws, aws_iam
from constructs import Construct


class ServiceRole(Construct):
    """A role with statements of our own; never a managed policy.

    Conditions on the caller's account and resource keep the service from being used by somebody
    else's (the confused deputy). `for_arn` is what follows `arn:<partition>:`, and may end in `*`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        service: str,
        for_arn: str,
        statements: list[aws_iam.PolicyStatement],
    ) -> None:
        super().__init__(scope, construct_id)
        trusted = aws_iam.ServicePrincipal(
            f"{service}.amazonaws.com",
            conditions={
                "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                "ArnLike": {"aws:SourceArn": f"arn:{Aws.PARTITION}:{for_arn}"},
            },
        )
        role = aws_iam.Role(
            self,
            "Role",
            assumed_by=trusted,
            inline_policies={"Own": aws_iam.PolicyDocument(statements=statements)},
        )
        self.arn = role.role_arn
