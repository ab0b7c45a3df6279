"""The puts stacks: one per entry of `puts:`, with its stream, its function and its tables."""

from __future__ import annotations

from aws_cdk import CfnOutput
from constructs import Construct

from cdclake import naming
from cdclake.config.deployment import Deployment
from cdclake.iceberg.schemas import put_schema
from cdclake.puts.put_table import FUNCTION, PutStream
from cdclake.stacks.bundles import build_firehose_puts
from cdclake.stacks.constructs.grant import arn
from cdclake.stacks.lake_stack import LakeOutputs
from cdclake.stacks.network_stack import NetworkOutputs
from cdclake.stacks.put_stack import PutParts, PutStack


class PutsStack(PutStack):
    """One entry of `puts:`, from the stream to its tables; producers are not part of it."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        put: PutStream,
        network: NetworkOutputs,
        lake: LakeOutputs,
    ) -> None:
        super().__init__(
            scope,
            deployment,
            f"puts-{put.name.replace('_', '-')}",
            f"put {'table' if put.route is None else 'tables of'} {put.name}",
            parts=PutParts(
                stream=put.stream,
                schemas=[put_schema(table) for table in put.targets],
                writable=put.tables,
                module=FUNCTION,
                code=build_firehose_puts(put, deployment.file.parent).path,
            ),
            context=network.context,
            lake=lake,
        )
        CfnOutput(self, "Producers", value=self._producers(), description="Grants for producers")

    def _producers(self) -> str:
        """Return what a producer's role must be allowed to do."""
        if self._shards is None:
            stream = arn("firehose", f"deliverystream/{self._name}")
            return f"firehose:PutRecord and firehose:PutRecordBatch on {stream}"
        name = naming.kinesis_stream_name(self.deployment.prefix, self._parts.stream.name)
        return (
            f"kinesis:PutRecord and kinesis:PutRecords on {arn('kinesis', f'stream/{name}')}, and"
            f" kms:GenerateDataKey on the key of the stack {self.deployment.prefix}-network"
        )
