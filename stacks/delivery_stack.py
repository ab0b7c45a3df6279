"""The delivery stack: Firehose streams from Kafka to the changelogs."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import CustomResource
from constructs import Construct

from cdclake import naming
from cdclake.config.deployment import Deployment
from cdclake.firehose.log_names import firehose_log, function_log
from cdclake.firehose.stream import DeliveryStream
from cdclake.stacks.awaited_tables import await_tables
from cdclake.stacks.bundles import FIREHOSE_CHANGES, build_firehose_changes
from cdclake.stacks.changes_access import ChangesAccess
from cdclake.stacks.constructs import firehose_grants
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.firehose_source import KafkaTopicSource
from cdclake.stacks.constructs.firehose_stream import (
    Collecting,
    FirehoseDestination,
    FirehoseStream,
    Processor,
    by_function,
    by_query,
)
from cdclake.stacks.constructs.grant import on_tables
from cdclake.stacks.constructs.log_group import LogGroup
from cdclake.stacks.constructs.rows_function import RowsFunction
from cdclake.stacks.delivery_redrive import DeliveryRedrive
from cdclake.stacks.lake_stack import LakeOutputs
from cdclake.stacks.pipeline_stack import PipelineStack
from cdclake.stacks.source_stack import SourceOutputs
from cdclake.stacks.streaming_stack import StreamingOutputs

_CHANGELOGS = naming.changes_name("*")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOutputs:
    """Function that decodes rows for Firehose."""

    function_name: str


class DeliveryStack(PipelineStack):
    """One Firehose stream per delivery of the plan; one function decodes the rows of all.

    The stack waits until the changelogs have the plan's columns, which the stream job adds when
    events arrive, and starts a stream that only runs by schedule. Otherwise Firehose would put rows
    that a changelog rejects into S3. With `delivery: off` the stack remains without streams: a
    stack that is removed from the app stays deployed, and would continue to deliver.
    """

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        source: SourceOutputs,
        streaming: StreamingOutputs,
        lake: LakeOutputs,
        context: DeploymentContext,
    ) -> None:
        if deployment.delivers:
            _check_connectivity(deployment)
        super().__init__(scope, deployment, "delivery", "Firehose streams from Kafka to changelogs")
        self._streaming, self._lake, self._context = streaming, lake, context
        self._access = ChangesAccess.of(lake.state, source, key_arn=context.key_arn)
        function = RowsFunction(
            self,
            "Rows",
            module=FIREHOSE_CHANGES,
            code=build_firehose_changes(deployment.plan).path,
            environment=self._access.environment,
            grants=self._access.grants,
            log_name=function_log(deployment.prefix),
            context=context,
        )
        self.outputs = DeliveryOutputs(function_name=function.name)
        # Exported even with `delivery: off`: deployed alarms may still import it.
        self.export_value(function.name)
        self._log = LogGroup(
            self,
            "Log",
            context=context,
            name=firehose_log(deployment.prefix),
        )
        if deployment.delivers:
            self._deliver(function)

    def _deliver(self, function: RowsFunction) -> None:
        there = self._await_changelogs()
        function.resource.node.add_dependency(there)
        for stream in self.deployment.plan.deliveries:
            self._add_stream(stream, function.arn).node.add_dependency(there)
        redrive = DeliveryRedrive(
            self,
            "Redrive",
            deployment=self.deployment,
            lake=self._lake,
            access=self._access,
            log=self._log,
            context=self._context,
        )
        redrive.node.add_dependency(there)

    def _await_changelogs(self) -> CustomResource:
        plan = self.deployment.plan
        delivered = [plan.table(name) for stream in plan.deliveries for name in stream.tables]
        columns = {table.changes: [each.name for each in table.columns] for table in delivered}
        return await_tables(
            self,
            "Logs",
            self.deployment,
            wanted={
                "Database": plan.lake_database,
                "Tables": list(columns),
            },
            columns=columns,
            looks_up=on_tables(
                "glue:GetTable",
                database=plan.lake_database,
                tables=[_CHANGELOGS],
                because="the pipeline's changelogs, which change with the pipeline file",
            ),
            context=self._context,
        ).resource

    def _add_stream(self, stream: DeliveryStream, function_arn: str) -> FirehoseStream:
        plan = self.deployment.plan
        tables = [plan.table(name).changes for name in stream.tables]
        return FirehoseStream(
            self,
            stream.name,
            name=naming.delivery_stream_name(self.deployment.prefix, stream.name),
            source=KafkaTopicSource(
                cluster_arn=self._streaming.cluster_arn,
                cluster=self._streaming.cluster_path,
                topic=stream.topic,
            ),
            into=FirehoseDestination(
                database=plan.lake_database,
                tables=tables,
                # Each table of a domain would add to a policy, and to a template, with limits.
                writable=tables if len(tables) == 1 else [_CHANGELOGS],
                warehouse=self._lake.warehouse,
                state=self._lake.state,
            ),
            collecting=Collecting.of(stream),
            processors=_processors(stream, function_arn),
            calls=[firehose_grants.calls(function_arn)],
            log=self._log,
            context=self._context,
        )


def _processors(stream: DeliveryStream, function_arn: str) -> list[Processor]:
    """Return the processors in the order of Firehose: decode the rows, then choose their tables."""
    made = by_function(
        function_arn,
        seconds=stream.function_seconds,
        mib=stream.function_mib,
        retries=stream.function_retries,
    )
    return [made, *([by_query(stream.route)] if stream.route else [])]


def _check_connectivity(deployment: Deployment) -> None:
    """Refuse deliveries without private connectivity, which MSK cannot enable at creation."""
    if deployment.aws.private_connectivity == "off":
        raise deployment.refusal(
            ("aws", "private_connectivity"),
            "Firehose cannot read Kafka while private connectivity is off, which MSK requires while"
            " it creates a cluster",
            "deploy with `aws: {delivery: off}` first; when the cluster exists, deploy with"
            " `aws: {private_connectivity: on, delivery: on}`",
        )
