"""Base class of the stacks whose records producers put: stream, function and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import aws_kinesis
from constructs import Construct

from cdclake import naming
from cdclake.config.deployment import Deployment
from cdclake.debezium.topics import RETENTION_DAYS
from cdclake.firehose.log_names import firehose_log, function_log
from cdclake.firehose.stream import DeliveryStream
from cdclake.iceberg.schemas import TableSchema
from cdclake.stacks.constructs import firehose_grants
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.firehose_source import (
    DeliverySource,
    DirectPutSource,
    KinesisStreamSource,
)
from cdclake.stacks.constructs.firehose_stream import (
    Collecting,
    FirehoseDestination,
    FirehoseStream,
    by_function,
    by_query,
)
from cdclake.stacks.constructs.iceberg_table import IcebergTableResource
from cdclake.stacks.constructs.log_group import LogGroup
from cdclake.stacks.constructs.nag_suppressions import suppress
from cdclake.stacks.constructs.rows_function import RowsFunction
from cdclake.stacks.constructs.table_optimizers import OptimizerRole, TableOptimizers
from cdclake.stacks.lake_stack import LakeOutputs
from cdclake.stacks.pipeline_stack import PipelineStack


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOutputs:
    """Function that converts records for Firehose."""

    function_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PutParts:
    """Stream in the plan, its tables, and the package of its function."""

    stream: DeliveryStream
    schemas: Sequence[TableSchema]
    writable: Sequence[str]  # the tables' names for the roles, maybe with `*`
    module: str
    code: Path


class PutStack(PipelineStack):
    """Firehose stream of put records with its function and tables, which Glue maintains."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        part: str,
        purpose: str,
        *,
        parts: PutParts,
        context: DeploymentContext,
        lake: LakeOutputs,
    ) -> None:
        super().__init__(scope, deployment, part, purpose)
        self._parts, self._context, self._lake = parts, context, lake
        self._name = naming.delivery_stream_name(deployment.prefix, parts.stream.name)
        tables = self._add_tables()
        self._shards = self._add_shards() if parts.stream.source == "kinesis" else None
        self._stream = self._add_stream()
        self._stream.node.add_dependency(*tables)

    def _add_tables(self) -> list[IcebergTableResource]:
        database, context = self.deployment.plan.lake_database, self._context
        role = OptimizerRole(
            self,
            "Optimizers",
            database=database,
            tables=self._parts.writable,
            warehouse=self._lake.warehouse,
            lake_formation=self.deployment.lake_formation,
            context=context,
        )
        tables = []
        for schema in self._parts.schemas:
            name = schema.name
            location = self._lake.location(name)
            table = IcebergTableResource(
                self,
                name,
                schema=schema,
                database=database,
                location=location,
                kept=context.kept,
            )
            optimizers = TableOptimizers(
                self,
                f"{name}-optimizers",
                database=database,
                table=name,
                location=location,
                role=role,
            )
            optimizers.node.add_dependency(table)
            tables.append(table)
        role.node.add_dependency(*tables)  # Lake Formation refuses rights on tables to come
        return tables

    def _add_shards(self) -> aws_kinesis.CfnStream:
        """Add a Kinesis stream on demand, which scales with the load and admits other consumers."""
        context = self._context
        shards = aws_kinesis.CfnStream(
            self,
            "Shards",
            name=naming.kinesis_stream_name(context.prefix, self._parts.stream.name),
            retention_period_hours=RETENTION_DAYS * 24,
            stream_mode_details=aws_kinesis.CfnStream.StreamModeDetailsProperty(
                stream_mode="ON_DEMAND"
            ),
            stream_encryption=aws_kinesis.CfnStream.StreamEncryptionProperty(
                encryption_type="KMS", key_id=context.key_arn
            ),
        )
        shards.apply_removal_policy(context.kept)
        suppress(shards, "KDS3", "one customer managed key encrypts all data at rest")
        return shards

    def _source(self) -> DeliverySource:
        key_arn = self._context.key_arn
        if self._shards is None:
            return DirectPutSource(key_arn=key_arn)
        return KinesisStreamSource(stream_arn=self._shards.attr_arn, key_arn=key_arn)

    def _add_stream(self) -> FirehoseStream:
        context, stream = self._context, self._parts.stream
        function = RowsFunction(
            self,
            "Rows",
            module=self._parts.module,
            code=self._parts.code,
            log_name=function_log(self._name),
            context=context,
        )
        self.outputs = PutOutputs(function_name=function.name)
        made = by_function(
            function.arn,
            seconds=stream.function_seconds,
            mib=stream.function_mib,
            retries=stream.function_retries,
        )
        return FirehoseStream(
            self,
            "Requests",
            name=self._name,
            source=self._source(),
            into=FirehoseDestination(
                database=self.deployment.plan.lake_database,
                tables=stream.tables,
                writable=self._parts.writable,
                warehouse=self._lake.warehouse,
                state=self._lake.state,
            ),
            collecting=Collecting.of(stream),
            processors=[made, *([by_query(stream.route)] if stream.route else [])],
            calls=[firehose_grants.calls(function.arn)],
            log=LogGroup(self, "Log", context=context, name=firehose_log(self._name)),
            context=context,
        )
