"""The web logs stacks: one per web server, with nginx, its request stream and its tables."""

from __future__ import annotations

from aws_cdk import Aws, aws_ecr_assets
from constructs import Construct

from cdclake import naming
from cdclake.config.aws_model import CreatedNetwork
from cdclake.config.deployment import Deployment
from cdclake.iceberg.schemas import request_schema
from cdclake.stacks.bundles import build_firehose_requests
from cdclake.stacks.constructs import web_server_grants
from cdclake.stacks.constructs.grant import Grant, arn
from cdclake.stacks.constructs.job_files import JobFiles
from cdclake.stacks.constructs.web_server import Router, ServedImage, WebServer
from cdclake.stacks.lake_stack import LakeOutputs
from cdclake.stacks.network_stack import WEB_PORT, NetworkOutputs
from cdclake.stacks.put_stack import PutParts, PutStack
from cdclake.web_logs import fluent_bit
from cdclake.web_logs.model import BUILD, FUNCTION, IMAGES, WebLogs


class WebLogsStack(PutStack):
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
        _check_registries(deployment, logs)
        part = f"weblogs-{logs.name.replace('_', '-')}"
        self._logs, self._network = logs, network
        super().__init__(
            scope,
            deployment,
            part,
            f"web server and request tables of {logs.name}",
            parts=PutParts(
                stream=logs.stream,
                schemas=[request_schema(name) for name in logs.tables],
                writable=logs.tables if logs.by == "day" else [f"{logs.name}_*"],
                module=FUNCTION,
                code=build_firehose_requests().path,
            ),
            context=network.context,
            lake=lake,
        )
        self._add_server()

    def _add_server(self) -> None:
        context, state = self._network.context, self._lake.state
        files = JobFiles(self, "Files", bucket=state, context=context)
        uris = [
            files.add_text("parsers.conf", fluent_bit.parsers()),
            files.add_text("filters.conf", fluent_bit.filters()),
        ]
        published = files.publish()
        keys = [f"{naming.DEPLOYED_PREFIX}/{uri.rpartition('/')[2]}" for uri in uris]
        group = self._network.web
        assert group is not None  # the network has one for every plan with web logs
        WebServer(
            self,
            "Server",
            name=self._name,
            server=self._image("nginx", self._logs.nginx),
            router=Router(
                image=self._image("router", self._logs.router),
                files=[f"{state.arn}/{key}" for key in keys],
                output=fluent_bit.output(self._logs.stream.source, self._target(), Aws.REGION),
                grants=[
                    *self._puts(),
                    *web_server_grants.reads_files(state, keys, context.key_arn),
                ],
            ),
            port=WEB_PORT,
            security_group=group.group_id,
            after=published,
            context=context,
        ).node.add_dependency(self._stream)

    def _image(self, name: str, declared: str | None) -> ServedImage:
        """Return a declared image; `cdk deploy` builds those to build, and pushes them to ECR."""
        assert declared is not None  # the validation of the pipeline file ensures it
        if declared != BUILD:
            return ServedImage(uri=declared, repository=web_server_grants.repository_of(declared))
        asset = aws_ecr_assets.DockerImageAsset(
            self,
            f"{name}-image",
            directory=str(IMAGES / name),
            platform=aws_ecr_assets.Platform.LINUX_AMD64,  # that of Fargate's tasks
        )
        return ServedImage(uri=asset.image_uri, repository=asset.repository.repository_arn)

    def _target(self) -> str:
        """Return the name of the stream that the router sends to."""
        if self._shards is None:
            return self._name
        return naming.kinesis_stream_name(self.deployment.prefix, self._logs.name)

    def _puts(self) -> list[Grant]:
        if self._shards is None:
            stream_arn = arn("firehose", f"deliverystream/{self._name}")
            return web_server_grants.puts_directly(stream_arn)
        key_arn = self._network.context.key_arn
        return web_server_grants.puts_into_shards(self._shards.attr_arn, key_arn)


def _check_registries(deployment: Deployment, logs: WebLogs) -> None:
    """Refuse images that the network cannot reach: a created one has a route to ECR only.

    CDK pushes built images to ECR.
    """
    for name, image in {"nginx": logs.nginx or "", "router": logs.router or ""}.items():
        closed = isinstance(deployment.aws.network.declared, CreatedNetwork)
        if closed and image != BUILD and not web_server_grants.is_of_ecr(image):
            raise deployment.refusal(
                ("weblogs", logs.name, "images", name),
                f"the created network has no route to the registry {image.partition('/')[0]}",
                "copy the image to an ECR repository of the account, and use its address"
                f" `ACCOUNT.dkr.ecr.REGION.amazonaws.com/name@sha256:...`, or write `{BUILD}`",
            )
