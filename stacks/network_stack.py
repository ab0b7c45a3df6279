"""The network stack: VPC and subnets, the security groups of the clients, and the KMS key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from constructs import Construct

from cdclake.config.aws_model import CreatedNetwork, ExistingNetwork, ExistingSource
from cdclake.config.deployment import Deployment
from cdclake.config.kafka_model import ExistingKafka
from cdclake.debezium.avro_converter import apicurio_port
from cdclake.stacks import owner_requests
from cdclake.stacks.constructs.deployment_context import DeploymentContext, kept
from cdclake.stacks.constructs.encryption import Encryption
from cdclake.stacks.constructs.flow_log import FlowLog
from cdclake.stacks.constructs.private_network import PrivateNetwork
from cdclake.stacks.constructs.probe_connector import add_probe_outputs
from cdclake.stacks.constructs.security_groups import ClientGroup, ServerGroup
from cdclake.stacks.pipeline_stack import PipelineStack
from cdclake.vpc_endpoints import interfaces_of

_HTTPS = 443
WEB_PORT = 80  # of nginx, behind the load balancer that terminates HTTPS


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkOutputs:
    """Context of the deployment, and the security groups of its clients."""

    context: DeploymentContext
    connect: ClientGroup
    functions: ClientGroup
    jobs: ClientGroup
    web: ClientGroup | None  # only with web logs

    @property
    def clients(self) -> tuple[ClientGroup, ...]:
        """Return the groups that connect to the source, Kafka and the endpoints."""
        return self.connect, self.functions, self.jobs


class NetworkStack(PipelineStack):
    """Created or existing VPC and subnets, client groups, and the key."""

    def __init__(self, scope: Construct, deployment: Deployment) -> None:
        super().__init__(scope, deployment, "network", "network, security groups and KMS key")
        protect = kept(deployment.aws.protect)
        encryption = Encryption(self, "Encryption", prefix=deployment.prefix, kept=protect)
        match deployment.aws.network.declared:
            case CreatedNetwork() as sizes:
                created = self._create(sizes)
                self.outputs = self._place(encryption.key_arn, created, created.zones)
                FlowLog(self, "FlowLog", context=self.outputs.context)
                self._add_endpoints(created)
            case ExistingNetwork() as existing:
                self.outputs = self._place(encryption.key_arn, existing)
                self._ask_for_endpoints()
        if deployment.plan.tables:
            context, connect = self.outputs.context, self.outputs.connect
            subnets = {"Subnets": ",".join(context.subnet_ids), "SecurityGroup": connect.group_id}
            add_probe_outputs(self, subnets)
            self._admit_to_source()
            self._admit_to_registry()
            self._ask_owner_of_kafka()

    def _place(
        self,
        key_arn: str,
        network: PrivateNetwork | ExistingNetwork,
        zones: Sequence[str] = (),
    ) -> NetworkOutputs:
        vpc_id, aws = network.vpc_id, self.deployment.aws
        context = DeploymentContext(
            prefix=self.deployment.prefix,
            vpc_id=vpc_id,
            subnet_ids=tuple(network.subnet_ids),
            zones=tuple(zones),
            key_arn=key_arn,
            log_days=aws.log_days,
            protect=aws.protect,
        )
        jobs = ClientGroup(self, "Jobs", vpc_id=vpc_id, who="Glue jobs")
        jobs.admit_itself()  # Glue requires this of a connection, for the workers of a job
        return NetworkOutputs(
            context=context,
            connect=ClientGroup(self, "Connect", vpc_id=vpc_id, who="MSK Connect"),
            functions=ClientGroup(self, "Functions", vpc_id=vpc_id, who="Lambda functions"),
            jobs=jobs,
            web=self._add_web_group(vpc_id) if self.deployment.plan.web_logs else None,
        )

    def _add_web_group(self, vpc_id: str) -> ClientGroup:
        web = ClientGroup(self, "Web", vpc_id=vpc_id, who="web servers")
        self.ask_owner(
            "WebServerOwner",
            f"No client can reach the web servers yet: admit your clients, such as the security"
            f" group of your load balancer, to {web.group_id} on port {WEB_PORT}",
        )
        return web

    def _create(self, sizes: CreatedNetwork) -> PrivateNetwork:
        created = PrivateNetwork(self, "Network", name=self.deployment.prefix, sizes=sizes)
        # A deployed source stack may be the only importer, so the export must not disappear.
        self.export_value(created.vpc_id)
        return created

    def _add_endpoints(self, network: PrivateNetwork) -> None:
        outputs = self.outputs
        endpoints = ServerGroup(self, "Endpoints", vpc_id=outputs.context.vpc_id, who="endpoints")
        endpoints.admit(*outputs.clients, *filter(None, [outputs.web]), port=_HTTPS)
        network.add_endpoints(
            interfaces_of(self.deployment.plan), security_group=endpoints.group_id
        )

    def _ask_for_endpoints(self) -> None:
        services = ", ".join(interfaces_of(self.deployment.plan))
        context, jobs = self.outputs.context, self.deployment.aws.jobs
        workers = (
            f". {context.subnet_ids[0]} needs a free address for each worker of a Glue job: up to"
            f" {jobs.stream.workers} of the stream, and {jobs.batch.workers} of each other run,"
            " for up to an hour after its end"
        )
        self.ask_owner(
            "NetworkOwner",
            f"The private subnets of {context.vpc_id} need routes to S3 and to the VPC"
            f" endpoints of {services}, and these endpoints must admit the security groups of this"
            f" stack on port {_HTTPS}{workers if self.deployment.plan.tables else ''}",
        )

    def _admit_to_source(self) -> None:
        """Add the egress rules to an existing source.

        They are in this stack, with the clients: when a deployment switches from a created to an
        existing source, the rules must exist before the created one is deleted, and the source
        stack cannot change its exports while other stacks import them.
        """
        existing = self.deployment.aws.source.declared
        if not isinstance(existing, ExistingSource):
            return
        rules = Construct(self, "Source")
        for client in self.outputs.clients:
            client.may_reach(rules, server=existing.security_group, port=existing.port)
        groups = ", ".join(client.group_id for client in self.outputs.clients)
        self.ask_owner("SourceOwner", owner_requests.source_request(existing, groups))

    def _admit_to_registry(self) -> None:
        """Add the egress rules to an Apicurio registry.

        Its host may be anywhere and change its address, so only the port is limited.
        """
        registry = self.deployment.plan.registry
        port = apicurio_port(registry)
        if port is None:
            return
        clients = (self.outputs.connect, self.outputs.jobs)
        if port != _HTTPS:  # which every client may reach
            rules = Construct(self, "Registry")
            for client in clients:
                client.may_reach_anywhere(rules, port=port)
        groups = ", ".join(client.group_id for client in clients)
        self.ask_owner(
            "RegistryOwner", f"{registry} must be reachable from the subnets, and admit {groups}"
        )

    def _ask_owner_of_kafka(self) -> None:
        existing = self.deployment.aws.kafka.declared
        if not isinstance(existing, ExistingKafka):
            return
        clients = (self.outputs.connect, self.outputs.jobs)
        groups = ", ".join(client.group_id for client in clients)
        self.ask_owner("KafkaOwner", owner_requests.kafka_request(existing, groups))
        if self.deployment.plan.deliveries:
            self.ask_owner("KafkaOwnerForFirehose", owner_requests.firehose_request(existing))
