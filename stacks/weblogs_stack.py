"""The web logs stacks: one per web server, with nginx, its request stream and its tables."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Aws, aws_kinesis
from constructs import Construct

from cdclake import naming
from cdclake.config.aws_model import CreatedNetwork
from cdclake.config.deployment import Deployment
from cdclake.debezium.topics import RETENTION_DAYS
from cdclake.iceberg.schemas import request_schema
from cdclake.stacks.bundles import build_firehose_requests
from cdclake.stacks.constructs import firehose_grants, web_server_grants
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
from cdclake.stacks.constructs.grant import Grant, arn
from cdclake.stacks.constructs.iceberg_table import IcebergTableResource
from cdclake.stacks.constructs.job_files import JobFiles
from cdclake.stacks.constructs.log_group import LogGroup
from cdclake.stacks.constructs.nag_suppressions import suppress
from cdclake.stacks.constructs.rows_function import RowsFunction
from cdclake.stacks.constructs.table_optimizers import OptimizerRole, TableOptimizers
from cdclake.stacks.constructs.web_server import Router, WebServer
from cdclake.stacks.lake_stack import LakeOutputs
from cdclake.stacks.network_stack import WEB_PORT, NetworkOutputs
from cdclake.stacks.pipeline_stack import PipelineStack
from cdclake.web_logs import fluent_bit
from cdclake.web_logs.model import FUNCTION, WebLogs


@dataclass(frozen=True, slots=True, kw_only=True)
class WebLogsOutputs:
    """Function that decodes rows for Firehose."""

    function_name: str


class WebLogsStack(PipelineStack):
    """One entry of `weblogs:`, from the server to its tables, which Glue's optimizers maintain."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        logs: WebLogs,
        network: NetworkOutputs,
        lake: LakeOutputs,
    ) -> None:
        images = _images(deployment, logs)
        part = f"weblogs-{logs.name.replace('_', '-')}"
        super().__init__(scope, deployment, part, f"web server and request tables of {logs.name}")
        self._logs, self._network, self._lake = logs, network, lake
        self._name = naming.delivery_stream_name(deployment.prefix, logs.name)
        self._add_tables()
        self._shards = self._add_shards() if logs.stream.source == "kinesis" else None
        stream = self._add_stream()
        self._add_server(images, stream)

    def _add_tables(self) -> None:
        database, ground = self.deployment.plan.lake_database, self._network.ground
        role = OptimizerRole(
            self, "Optimizers", database=database, warehouse=self._lake.warehouse, ground=ground
        )
        self._tables = []
        for name in self._logs.tables:
            location = self._lake.location(name)
            table = IcebergTableResource(
                self,
                name,
                schema=request_schema(name),
                database=database,
                location=location,
                kept=ground.kept,
            )
            optimizers = TableOptimizers(
                self,
                f"{name}-optimizers",
                database=database,
                table=name,
                location=location,
                role_arn=role.arn,
            )
            optimizers.node.add_dependency(table)
            self._tables.append(table)

    def _add_shards(self) -> aws_kinesis.CfnStream:
        """Add a Kinesis stream on demand, which scales with the load and admits other consumers."""
        ground = self._network.ground
        shards = aws_kinesis.CfnStream(
            self,
            "Shards",
            name=naming.kinesis_stream_name(ground.prefix, self._logs.name),
            retention_period_hours=RETENTION_DAYS * 24,
            stream_mode_details=aws_kinesis.CfnStream.StreamModeDetailsProperty(
                stream_mode="ON_DEMAND"
            ),
            stream_encryption=aws_kinesis.CfnStream.StreamEncryptionProperty(
                encryption_type="KMS", key_id=ground.key_arn
            ),
        )
        shards.apply_removal_policy(ground.kept)
        suppress(shards, "KDS3", "one customer managed key encrypts all data at rest")
        return shards

    def _source(self) -> DeliverySource:
        key_arn = self._network.ground.key_arn
        if self._shards is None:
            return DirectPutSource(key_arn=key_arn)
        return KinesisStreamSource(stream_arn=self._shards.attr_arn, key_arn=key_arn)

    def _add_stream(self) -> FirehoseStream:
        ground, logs = self._network.ground, self._logs
        function = RowsFunction(
            self, "Rows", module=FUNCTION, code=build_firehose_requests().path, ground=ground
        )
        self.outputs = WebLogsOutputs(function_name=function.name)
        made = by_function(
            function.arn,
            seconds=logs.stream.function_seconds,
            mib=logs.stream.function_mib,
            retries=logs.stream.function_retries,
        )
        stream = FirehoseStream(
            self,
            "Requests",
            name=self._name,
            source=self._source(),
            into=FirehoseDestination(
                database=self.deployment.plan.lake_database,
                tables=logs.tables,
                writable=logs.tables if logs.by == "day" else [f"{logs.name}_*"],
                warehouse=self._lake.warehouse,
                state=self._lake.state,
            ),
            collecting=Collecting.of(logs.stream),
            processors=[made, *([by_query(logs.stream.route)] if logs.stream.route else [])],
            calls=[firehose_grants.calls(function.arn)],
            log=LogGroup(self, "Log", ground=ground, name=f"/aws/kinesisfirehose/{self._name}"),
            ground=ground,
        )
        stream.node.add_dependency(*self._tables)
        return stream

    def _add_server(self, images: tuple[str, str], stream: FirehoseStream) -> None:
        ground, state = self._network.ground, self._lake.state
        files = JobFiles(self, "Files", bucket=state, ground=ground)
        uris = [
            files.add_text("parsers.conf", fluent_bit.parsers()),
            files.add_text("filters.conf", fluent_bit.filters()),
        ]
        published = files.publish()
        keys = [f"{naming.DEPLOYED_PREFIX}/{uri.rpartition('/')[2]}" for uri in uris]
        server, router = images
        group = self._network.web
        assert group is not None  # the network has one for every plan with web logs
        WebServer(
            self,
            "Server",
            name=self._name,
            server_image=server,
            router_image=router,
            router=Router(
                files=[f"{state.arn}/{key}" for key in keys],
                output=fluent_bit.output(self._logs.stream.source, self._target(), Aws.REGION),
                grants=[
                    *self._puts(),
                    *web_server_grants.reads_files(state, keys, ground.key_arn),
                ],
            ),
            port=WEB_PORT,
            security_group=group.group_id,
            after=published,
            ground=ground,
        ).node.add_dependency(stream)

    def _target(self) -> str:
        """Return the name of the stream that the router sends to."""
        if self._shards is None:
            return self._name
        return naming.kinesis_stream_name(self.deployment.prefix, self._logs.name)

    def _puts(self) -> list[Grant]:
        if self._shards is None:
            stream_arn = arn("firehose", f"deliverystream/{self._name}")
            return web_server_grants.puts_directly(stream_arn)
        key_arn = self._network.ground.key_arn
        return web_server_grants.puts_into_shards(self._shards.attr_arn, key_arn)


def _images(deployment: Deployment, logs: WebLogs) -> tuple[str, str]:
    """Return the images of nginx and the router; refuse those that the network cannot reach.

    A created network has no internet access and reaches ECR only. The validation of the pipeline
    file ensures that both images are declared.
    """
    found = {"nginx": logs.nginx or "", "router": logs.router or ""}
    for name, image in found.items():
        closed = isinstance(deployment.aws.network.declared, CreatedNetwork)
        if closed and not web_server_grants.is_of_ecr(image):
            raise deployment.refusal(
                ("weblogs", logs.name, "images", name),
                f"the created network has no route to the registry {image.partition('/')[0]}",
                "copy the image to an ECR repository of the account, and use its address"
                " `ACCOUNT.dkr.ecr.REGION.amazonaws.com/name@sha256:...`",
            )
    return found["nginx"], found["router"]
