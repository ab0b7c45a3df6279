"""The redrive of put records: a function that operators invoke, and that puts them again."""

from __future__ import annotations

from collections.abc import Iterator

from aws_cdk import Aws
from constructs import Construct

from cdclake import naming
from cdclake.config.deployment import Deployment
from cdclake.stacks.bundles import build_firehose_redrive_puts
from cdclake.stacks.constructs import firehose_grants
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.function import LambdaFunction
from cdclake.stacks.constructs.grant import Grant, arn, through_s3
from cdclake.stacks.lake_stack import LakeOutputs
from cdclake.stacks.pipeline_stack import PipelineStack

_TIMEOUT_S = 900  # Lambda's maximum
_MEMORY_MB = 512  # for the records of a request and those of an object that cannot be put
# IAM limits the inline policies of a role to 10,240 characters. The other statements take at most
# 1,600, and an ARN 70 around the name, in the partition and region with the longest names.
_MAX_NAMED = 8_640
_ARN = 70
_TOO_LONG = "the deployment's streams by prefix: IAM allows no list of so many names"


class RedrivePutsStack(PipelineStack):
    """Function that puts the failed records of web logs and put tables into their streams again."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        lake: LakeOutputs,
        context: DeploymentContext,
    ) -> None:
        super().__init__(scope, deployment, "redrive-puts", "redrive of put records")
        plan, state = deployment.plan, lake.state
        folder = plan.put_streams[0].error_prefix  # the same for all streams
        LambdaFunction(
            self,
            "Function",
            # Operators and the CLI invoke it by name.
            name=naming.redrive_puts_function(deployment.prefix),
            module="firehose_redrive_puts",
            code=build_firehose_redrive_puts(plan).path,
            environment={"BUCKET": state.name, "PREFIX": deployment.prefix},
            grants=[
                *firehose_grants.moves_failed(state, folder),
                through_s3(context.key_arn),
                *self._puts(context.key_arn),
            ],
            timeout_s=_TIMEOUT_S,
            memory_mb=_MEMORY_MB,
            context=context,
        )

    def _puts(self, key_arn: str) -> Iterator[Grant]:
        """Yield the grants to put into what producers put into: Firehose, or Kinesis."""
        prefix, streams = self.deployment.prefix, self.deployment.plan.put_streams
        direct = [
            naming.delivery_stream_name(prefix, stream.name)
            for stream in streams
            if stream.source == "direct_put"
        ]
        shards = [
            naming.kinesis_stream_name(prefix, stream.name)
            for stream in streams
            if stream.source == "kinesis"
        ]
        if sum(_ARN + len(name) for name in (*direct, *shards)) > _MAX_NAMED:
            direct, shards = ([f"{prefix}-*"] if names else [] for names in (direct, shards))
        if direct:
            yield Grant(
                actions=["firehose:PutRecordBatch"],
                on=[arn("firehose", f"deliverystream/{name}") for name in direct],
                because=_TOO_LONG,
            )
        if shards:
            yield Grant(
                actions=["kinesis:PutRecords"],
                on=[arn("kinesis", f"stream/{name}") for name in shards],
                because=_TOO_LONG,
            )
            yield Grant(
                actions=["kms:GenerateDataKey"],
                on=[key_arn],
                only_if={"StringEquals": {"kms:ViaService": f"kinesis.{Aws.REGION}.amazonaws.com"}},
            )
