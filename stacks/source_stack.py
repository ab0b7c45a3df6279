"""The source stack: the database server, created or existing, and the connector's login."""

from __future__ import annotations

from constructs import Construct

from cdclake import naming
from cdclake.config.aws_model import CreatedSource, ExistingSource
from cdclake.config.deployment import Deployment
from cdclake.stacks.constructs.generated_secret import LoginSecret, SaltSecret
from cdclake.stacks.constructs.postgres_server import PORT, PostgresServer
from cdclake.stacks.constructs.security_groups import ServerGroup
from cdclake.stacks.network_stack import NetworkStack
from cdclake.stacks.pipeline_stack import PipelineStack


class SourceStack(PipelineStack):
    """Where the changes come from: endpoint, port, and the secrets of administrator and role."""

    def __init__(self, scope: Construct, deployment: Deployment, *, network: NetworkStack) -> None:
        super().__init__(scope, deployment, "source", "source database and its credentials")
        self._network = network
        self.login = LoginSecret(
            self,
            "Login",
            name=naming.login_secret(deployment.prefix),
            username=deployment.plan.source_object,
            key_arn=network.ground.key_arn,
        )
        # Also where no column is hashed yet: one can be, and be so no more, while others import it.
        self.salt = SaltSecret(
            self, "Salt", name=naming.salt_secret(deployment.prefix), ground=network.ground
        )
        self.export_value(self.salt.arn)
        match deployment.aws.source.declared:
            case CreatedSource() as sizes:
                self._create(sizes)
            case ExistingSource() as existing:
                self._use(existing)

    @property
    def role_secrets(self) -> list[str]:
        """ARNs of what is read by those who act as the connector's role."""
        salts = [self.salt.arn] if self.deployment.plan.is_salted else []
        return [self.login.arn, *salts]

    def _create(self, sizes: CreatedSource) -> None:
        ground = self._network.ground
        group = ServerGroup(self, "Database", vpc_id=ground.vpc_id, who="source database")
        group.admit(*self._network.clients, port=PORT)
        server = PostgresServer(
            self,
            "Server",
            database=self.deployment.plan.source_database,
            sizes=sizes,
            security_group=group.group_id,
            ground=ground,
        )
        self.endpoint, self.port = server.endpoint, PORT
        self.admin_secret_arn = server.admin_secret_arn

    def _use(self, existing: ExistingSource) -> None:
        self.endpoint, self.port = existing.endpoint, existing.port
        self.admin_secret_arn = existing.secret_arn
        # Beside the clients: who goes from a created server to this one is let out to it before
        # the created one goes, which this stack can't do until nobody imports its address.
        rules = Construct(self._network, "Source")
        for client in self._network.clients:
            client.may_reach(rules, server=existing.security_group, port=existing.port)
        groups = ", ".join(client.group_id for client in self._network.clients)
        self._network.ask_owner(
            "SourceOwner",
            f"{existing.security_group} must admit {groups} on port {existing.port}; the server"
            " needs logical replication (rds.logical_replication = 1, effective after a restart),"
            " TLS, and a WAL limit for inactive slots (max_slot_wal_keep_size)",
        )
