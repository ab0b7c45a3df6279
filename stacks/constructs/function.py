"""A Lambda function of ours: one folder, no dependencies but boto3, which Lambda has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from aws_cdk import aws_lambda, aws_s3_assets
from constructs import Construct

from stacks.constructs.grant import Grant
from stacks.constructs.ground import Ground
from stacks.constructs.log_group import LogGroup
from stacks.constructs.service_role import ServiceRole

_FOLDERS = Path(__file__).resolve().parents[2] / "lambda"
_RUNTIME = "python3.14"
_Function = aws_lambda.CfnFunction


class Function(Construct):
    """`lambda/<module>/<module>.py`, its function `handler`, with a role and a log of its own."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        module: str,
        environment: Mapping[str, str],
        grants: Sequence[Grant],
        timeout_s: int,
        ground: Ground,
    ) -> None:
        super().__init__(scope, construct_id)
        log = LogGroup(self, "Log", ground=ground)
        code = aws_s3_assets.Asset(
            self, "Code", path=str(_FOLDERS / module), exclude=["__pycache__", "*.pyc"]
        )
        role = ServiceRole(self, "Role", service="lambda", statements=[*grants, log.written_to()])
        function = _Function(
            self,
            "Function",
            runtime=_RUNTIME,
            architectures=["arm64"],
            handler=f"{module}.handler",
            role=role.arn,
            timeout=timeout_s,
            memory_size=256,
            code=_Function.CodeProperty(s3_bucket=code.s3_bucket_name, s3_key=code.s3_object_key),
            environment=_Function.EnvironmentProperty(variables=dict(environment)),
            logging_config=_Function.LoggingConfigProperty(log_group=log.name, log_format="JSON"),
        )
        self.arn, self.resource = function.attr_arn, function
