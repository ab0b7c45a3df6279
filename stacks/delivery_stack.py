"""The delivery stack: Firehose's streams, from Kafka to the change logs."""

from __future__ import annotations

from aws_cdk import CustomResource
from constructs import Construct

from cdclake import naming
from cdclake.config.deployment import Deployment
from cdclake.firehose.stream import DeliveryStream
from cdclake.stacks.bundles import FIREHOSE_CHANGES, build_firehose_changes
from cdclake.stacks.cdc_stack import CdcStack
from cdclake.stacks.constructs import firehose_grants
from cdclake.stacks.constructs.custom_resource import CdclakeResource
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
from cdclake.stacks.lake_stack import LakeStack
from cdclake.stacks.network_stack import NetworkStack
from cdclake.stacks.pipeline_stack import PipelineStack
from cdclake.stacks.processing_stack import ProcessingStack
from cdclake.stacks.streaming_stack import StreamingStack

_MAX_TIMEOUT_S = 900
_LOGS = naming.changes_name("*")


class DeliveryStack(PipelineStack):
    """A stream for each of the plan's deliveries, over one function that makes their rows.

    It waits for the logs with the plan's columns, which the stream makes when events come: what a
    log does not take would lie in S3. With `delivery: off` it has no stream, and is there to have
    none: a stack that left the app would stand as it was, and deliver.
    """

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        network: NetworkStack,
        streaming: StreamingStack,
        lake: LakeStack,
        cdc: CdcStack,
        processing: ProcessingStack,
    ) -> None:
        if deployment.delivers:
            _check_connectivity(deployment)
        super().__init__(scope, deployment, "delivery", "Firehose streams from Kafka to changelogs")
        for stack in (lake, cdc, processing):
            self.add_stack_dependency(stack)
        self._network, self._streaming, self._lake = network, streaming, lake
        function = RowsFunction(
            self,
            "Rows",
            module=FIREHOSE_CHANGES,
            code=build_firehose_changes(deployment.plan).path,
            ground=network.ground,
        )
        self.function_name = function.name
        self.export_value(function.name)  # the alarms may use it yet when it delivers no more
        self._log = LogGroup(
            self,
            "Log",
            ground=network.ground,
            name=f"/aws/kinesisfirehose/{deployment.prefix}",
        )
        if deployment.delivers:
            self._deliver(function)

    def _deliver(self, function: RowsFunction) -> None:
        there, ground = self._await_logs(), self._network.ground
        function.resource.node.add_dependency(there)
        for stream in self.deployment.plan.deliveries:
            self._add_stream(stream, function.arn).node.add_dependency(there)
        redrive = DeliveryRedrive(
            self,
            "Redrive",
            deployment=self.deployment,
            lake=self._lake,
            log=self._log,
            ground=ground,
        )
        redrive.node.add_dependency(there)

    def _await_logs(self) -> CustomResource:
        plan = self.deployment.plan
        delivered = [plan.table(name) for stream in plan.deliveries for name in stream.tables]
        columns = {table.changes: [each.name for each in table.columns] for table in delivered}
        there = CdclakeResource(
            self,
            "Logs",
            what="Tables",
            properties={
                "Database": plan.lake_database,
                "Tables": list(columns),
                "Columns": columns,
            },
            grants=[
                on_tables(
                    "glue:GetTable",
                    database=plan.lake_database,
                    tables=[_LOGS],
                    because="the pipeline's changelogs, which change with the pipeline file",
                )
            ],
            ground=self._network.ground,
            timeout_s=_MAX_TIMEOUT_S,
        )
        return there.resource

    def _add_stream(self, stream: DeliveryStream, function_arn: str) -> FirehoseStream:
        plan = self.deployment.plan
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
                tables=[plan.table(name).changes for name in stream.tables],
                writable=[_LOGS],
                warehouse=self._lake.warehouse,
                state=self._lake.state,
            ),
            collecting=Collecting.of(stream),
            processors=_processors(stream, function_arn),
            calls=[firehose_grants.calls(function_arn)],
            log=self._log,
            ground=self._network.ground,
        )


def _processors(stream: DeliveryStream, function_arn: str) -> list[Processor]:
    """Firehose transforms first, and then reads what the function has made."""
    made = by_function(
        function_arn,
        seconds=stream.function_seconds,
        mib=stream.function_mib,
        retries=stream.function_retries,
    )
    return [made, *([by_query(stream.route)] if stream.route else [])]


def _check_connectivity(deployment: Deployment) -> None:
    """Firehose reaches Kafka by private links alone, which no cluster has at its creation."""
    if deployment.aws.private_connectivity == "off":
        raise deployment.refusal(
            ("aws", "private_connectivity"),
            "Firehose cannot read Kafka while private connectivity is off, which MSK requires while"
            " it creates a cluster",
            "deploy with `aws: {delivery: off}` first; when the cluster exists, deploy with"
            " `aws: {private_connectivity: on, delivery: on}`",
        )
