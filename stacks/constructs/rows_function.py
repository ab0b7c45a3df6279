"""A function that decodes rows for Firehose streams, and counts rejected events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from aws_cdk import aws_logs
from constructs import Construct

from cdclake import naming
from cdclake.firehose.stream import CALL_TIMEOUT_S
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.function import LambdaFunction
from cdclake.stacks.constructs.grant import Grant

_MEMORY_MB = 1024  # for a call's records, their rows, and both in base64


class RowsFunction(LambdaFunction):
    """`lambda/<module>`, which logs the number of rejected records in the field `refused`."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        module: str,
        code: Path,
        log_name: str,
        context: DeploymentContext,
        environment: Mapping[str, str] | None = None,
        grants: Sequence[Grant] = (),
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            module=module,
            code=code,
            environment=environment or {},
            grants=grants,
            timeout_s=CALL_TIMEOUT_S,
            memory_mb=_MEMORY_MB,
            log_name=log_name,
            context=context,
        )
        self.name = self.resource.ref
        aws_logs.CfnMetricFilter(
            self,
            "Refused",
            log_group_name=self.log.name,
            filter_pattern="{ $.refused > 0 }",
            metric_transformations=[
                aws_logs.CfnMetricFilter.MetricTransformationProperty(
                    metric_namespace=naming.delivery_metrics(context.prefix),
                    metric_name=naming.REFUSED_METRIC,
                    metric_value="$.refused",
                    unit="Count",
                )
            ],
        )
