"""The network stack: where everything stands, who may connect from where, and the key."""

from __future__ import annotations

from collections.abc import Sequence

from constructs import Construct

from cdclake.config.aws_model import CreatedNetwork, ExistingNetwork
from cdclake.config.deployment import Deployment
from cdclake.stacks.constructs.deployment_context import DeploymentContext, kept
from cdclake.stacks.constructs.encryption import Encryption
from cdclake.stacks.constructs.flow_log import FlowLog
from cdclake.stacks.constructs.private_network import PrivateNetwork, interfaces_of
from cdclake.stacks.constructs.security_groups import ClientGroup, ServerGroup
from cdclake.stacks.pipeline_stack import PipelineStack

_HTTPS = 443
WEB_PORT = 80  # nginx's, behind whatever takes HTTPS


class NetworkStack(PipelineStack):
    """VPC and subnets, created or existing; the groups of those who connect; the key."""

    def __init__(self, scope: Construct, deployment: Deployment) -> None:
        super().__init__(scope, deployment, "network", "network, security groups and KMS key")
        protect = kept(deployment.aws.protect)
        encryption = Encryption(self, "Encryption", prefix=deployment.prefix, kept=protect)
        self._key_arn = encryption.key_arn
        match deployment.aws.network.declared:
            case CreatedNetwork() as sizes:
                created = self._create(sizes)
                self._set_place(created, created.zones)
                FlowLog(self, "FlowLog", ground=self.ground)
                self._add_endpoints(created)
            case ExistingNetwork() as existing:
                self._set_place(existing)
                self._ask_for_endpoints()

    def _set_place(
        self, network: PrivateNetwork | ExistingNetwork, zones: Sequence[str] = ()
    ) -> None:
        vpc_id, aws = network.vpc_id, self.deployment.aws
        self.ground = DeploymentContext(
            prefix=self.deployment.prefix,
            vpc_id=vpc_id,
            subnet_ids=tuple(network.subnet_ids),
            zones=tuple(zones),
            key_arn=self._key_arn,
            log_days=aws.log_days,
            protect=aws.protect,
        )
        self.connect = ClientGroup(self, "Connect", vpc_id=vpc_id, who="MSK Connect")
        self.functions = ClientGroup(self, "Functions", vpc_id=vpc_id, who="Lambda functions")
        self.jobs = ClientGroup(self, "Jobs", vpc_id=vpc_id, who="Glue jobs")
        self.jobs.admit_itself()  # as Glue demands of a connection: a job's workers
        self.web = None
        if self.deployment.plan.web_logs:
            self.web = ClientGroup(self, "Web", vpc_id=vpc_id, who="web servers")
            self.ask_owner(
                "WebServerOwner",
                f"No client can reach the web servers yet: admit your clients, such as the security"
                f" group of your load balancer, to {self.web.group_id} on port {WEB_PORT}",
            )

    @property
    def clients(self) -> tuple[ClientGroup, ...]:
        """Everybody who connects to something of the lake."""
        return self.connect, self.functions, self.jobs

    def _create(self, sizes: CreatedNetwork) -> PrivateNetwork:
        created = PrivateNetwork(
            self, "Network", name=self.deployment.prefix, cidr=sizes.cidr, zones=sizes.zones
        )
        self.export_value(created.vpc_id)  # a source may be deployed yet that alone needs it
        return created

    def _add_endpoints(self, network: PrivateNetwork) -> None:
        endpoints = ServerGroup(self, "Endpoints", vpc_id=self.ground.vpc_id, who="endpoints")
        endpoints.admit(*self.clients, *filter(None, [self.web]), port=_HTTPS)
        network.add_endpoints(
            interfaces_of(self.deployment.plan), security_group=endpoints.group_id
        )

    def _ask_for_endpoints(self) -> None:
        services = ", ".join(interfaces_of(self.deployment.plan))
        self.ask_owner(
            "NetworkOwner",
            f"The private subnets of {self.ground.vpc_id} need routes to S3 and to the VPC"
            f" endpoints of {services}, and these endpoints must admit the security groups of this"
            f" stack on port {_HTTPS}",
        )
