"""nginx on ECS Fargate, with a Fluent Bit sidecar that forwards its access log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Aws, aws_ecs
from constructs import Construct, IDependable

from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant
from cdclake.stacks.constructs.log_group import LogGroup
from cdclake.stacks.constructs.nag_suppressions import suppress
from cdclake.stacks.constructs.service_role import ServiceRole
from cdclake.stacks.constructs.web_server_grants import pulls
from cdclake.web_logs import fluent_bit, nginx

_Task = aws_ecs.CfnTaskDefinition
_Service = aws_ecs.CfnService
_Settings = aws_ecs.CfnCluster.ClusterSettingsProperty
_SERVICE = "ecs-tasks"
_TASKS = 2  # in different zones
_CPU, _MEMORY_MB = 256, 512
_ROUTER_MEMORY_MB = 128  # reserved for Fluent Bit, which buffers unsent records in memory
_STOP_TIMEOUT_S = fluent_bit.GRACE_S + 10  # then ECS kills the router; at most 120
_SCRATCH = "scratch"
_ROUTER = "router"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedImage:
    """Image of a container; `repository` is the ARN of its repository, if that is in ECR."""

    uri: str
    repository: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """Image and configuration of the Fluent Bit sidecar."""

    image: ServedImage
    files: Sequence[str]  # ARNs of included configuration objects
    output: Mapping[str, str]
    grants: Sequence[Grant]


class WebServer(Construct):
    """Service of two tasks in the private subnets; its security group admits no client."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        server: ServedImage,
        router: Router,
        port: int,
        security_group: str,
        after: IDependable,
        context: DeploymentContext,
    ) -> None:
        super().__init__(scope, construct_id)
        self._port, self._log = port, LogGroup(self, "Log", context=context)
        cluster = aws_ecs.CfnCluster(
            self,
            "Cluster",
            cluster_name=name,
            cluster_settings=[_Settings(name="containerInsights", value="enabled")],
        )
        task = self._add_task(name, server, router)
        service = _Service(
            self,
            "Service",
            service_name=name,
            cluster=cluster.attr_arn,
            task_definition=task.ref,
            launch_type="FARGATE",
            desired_count=_TASKS,
            enable_execute_command=False,
            propagate_tags="SERVICE",
            deployment_configuration=_back_at_failure(),
            network_configuration=_in_private(context, security_group),
        )
        service.node.add_dependency(after)

    def _add_task(
        self, name: str, server: ServedImage, router: Router
    ) -> aws_ecs.CfnTaskDefinition:
        owner = f"ecs:{Aws.REGION}:{Aws.ACCOUNT_ID}:*"
        repositories = [image.repository for image in (server, router.image) if image.repository]
        execution = ServiceRole(
            self,
            "Execution",
            service=_SERVICE,
            for_arn=owner,
            statements=[*pulls(repositories), self._log.written_to()],
        )
        own = ServiceRole(self, "Task", service=_SERVICE, for_arn=owner, statements=router.grants)
        task = _Task(
            self,
            "Definition",
            family=name,
            requires_compatibilities=["FARGATE"],
            network_mode="awsvpc",
            cpu=str(_CPU),
            memory=str(_MEMORY_MB),
            execution_role_arn=execution.arn,
            task_role_arn=own.arn,
            volumes=[_Task.VolumeProperty(name=_SCRATCH)],
            container_definitions=[
                _server(server.uri, self._port, router.output),
                self._router(router.image.uri, router.files),
            ],
        )
        suppress(task, "ECS2", "the variables contain only configuration that the template shows")
        return task

    def _router(
        self, image: str, files: Sequence[str]
    ) -> aws_ecs.CfnTaskDefinition.ContainerDefinitionProperty:
        """Return the sidecar; its disk is writable, since it downloads the included files."""
        return _Task.ContainerDefinitionProperty(
            name=_ROUTER,
            image=image,
            essential=True,
            memory_reservation=_ROUTER_MEMORY_MB,
            stop_timeout=_STOP_TIMEOUT_S,
            firelens_configuration=_Task.FirelensConfigurationProperty(type="fluentbit"),
            environment=[
                _Task.KeyValuePairProperty(name=f"aws_fluent_bit_init_s3_{number}", value=file)
                for number, file in enumerate(files, start=1)
            ],
            log_configuration=_Task.LogConfigurationProperty(
                log_driver="awslogs",
                options={
                    "awslogs-group": self._log.name,
                    "awslogs-region": Aws.REGION,
                    "awslogs-stream-prefix": _ROUTER,
                },
            ),
        )


def _back_at_failure() -> aws_ecs.CfnService.DeploymentConfigurationProperty:
    breaker = _Service.DeploymentCircuitBreakerProperty(enable=True, rollback=True)
    return _Service.DeploymentConfigurationProperty(deployment_circuit_breaker=breaker)


def _in_private(
    context: DeploymentContext, security_group: str
) -> aws_ecs.CfnService.NetworkConfigurationProperty:
    place = _Service.AwsVpcConfigurationProperty(
        subnets=list(context.subnet_ids),
        security_groups=[security_group],
        assign_public_ip="DISABLED",
    )
    return _Service.NetworkConfigurationProperty(awsvpc_configuration=place)


def _server(
    image: str, port: int, output: Mapping[str, str]
) -> aws_ecs.CfnTaskDefinition.ContainerDefinitionProperty:
    return _Task.ContainerDefinitionProperty(
        name=fluent_bit.CONTAINER,
        image=image,
        essential=True,
        readonly_root_filesystem=True,
        mount_points=[
            _Task.MountPointProperty(source_volume=_SCRATCH, container_path=nginx.SCRATCH)
        ],
        command=nginx.command(),
        environment=[_Task.KeyValuePairProperty(name=nginx.TEXT, value=nginx.configuration())],
        port_mappings=[_Task.PortMappingProperty(container_port=port, protocol="tcp")],
        # Log lines are lost until the router runs.
        depends_on=[_Task.ContainerDependencyProperty(container_name=_ROUTER, condition="START")],
        log_configuration=_Task.LogConfigurationProperty(
            log_driver="awsfirelens", options=dict(output)
        ),
    )
