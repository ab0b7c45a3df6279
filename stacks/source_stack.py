"""The source stack: the database server, created or existing, and the connector's credentials."""

from __future__ import annotations

from dataclasses import dataclass

from constructs import Construct

from cdclake import naming
from cdclake.config.aws_model import CreatedSource, ExistingSource
from cdclake.config.deployment import Deployment
from cdclake.stacks.bundles import build_source_sql
from cdclake.stacks.constructs import connect_grants
from cdclake.stacks.constructs.aurora_cluster import AuroraCluster
from cdclake.stacks.constructs.generated_secret import LoginSecret, SaltSecret
from cdclake.stacks.constructs.grant import Grant
from cdclake.stacks.constructs.postgres_server import PORT, PostgresServer
from cdclake.stacks.constructs.security_groups import ServerGroup
from cdclake.stacks.constructs.source_sql import SourceSql
from cdclake.stacks.lake_stack import LakeOutputs
from cdclake.stacks.network_stack import NetworkOutputs
from cdclake.stacks.pipeline_stack import PipelineStack


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOutputs:
    """Address of the source database, its secrets, and the grants to read them."""

    endpoint: str
    port: int
    admin_secret_arn: str
    login_name: str
    login_arn: str
    salt_name: str
    salt_arn: str
    is_masked: bool  # whether a column's mask uses the salt
    key_arn: str

    def grant_read_admin(self) -> list[Grant]:
        """Allow reading the credentials of the administrator and of the connector's role."""
        return connect_grants.reads_secrets((self.admin_secret_arn, self.login_arn), self.key_arn)

    def grant_read_login(self) -> list[Grant]:
        """Allow reading the credentials of the connector's role."""
        return connect_grants.reads_secrets((self.login_arn,), self.key_arn)

    def grant_read_salt(self) -> list[Grant]:
        """Allow reading the salt, for the hashes of erased keys."""
        return connect_grants.reads_secrets((self.salt_arn,), self.key_arn)

    def grant_read_login_and_salt(self) -> list[Grant]:
        """Allow reading the credentials of the connector's role, and the salt if a mask uses it."""
        salts = (self.salt_arn,) if self.is_masked else ()
        return connect_grants.reads_secrets((self.login_arn, *salts), self.key_arn)

    def grant_erase_rows(self) -> list[Grant]:
        """Allow reading the credentials of the connector's role, and the salt."""
        return connect_grants.reads_secrets((self.login_arn, self.salt_arn), self.key_arn)


class SourceStack(PipelineStack):
    """Source database with the secrets of its administrator and of the connector's role."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        network: NetworkOutputs,
        lake: LakeOutputs,
    ) -> None:
        super().__init__(scope, deployment, "source", "source database and its credentials")
        login = LoginSecret(
            self,
            "Login",
            name=naming.login_secret(deployment.prefix),
            username=deployment.plan.source_object,
            key_arn=network.context.key_arn,
        )
        # Exists even if no column is hashed: the keys of erased rows are.
        salt = SaltSecret(
            self, "Salt", name=naming.salt_secret(deployment.prefix), context=network.context
        )
        endpoint, port, admin_secret_arn = self._server(network)
        self.outputs = SourceOutputs(
            endpoint=endpoint,
            port=port,
            admin_secret_arn=admin_secret_arn,
            login_name=login.name,
            login_arn=login.arn,
            salt_name=salt.name,
            salt_arn=salt.arn,
            is_masked=deployment.plan.is_salted,
            key_arn=network.context.key_arn,
        )
        self._add_sql(network, lake)

    def _add_sql(self, network: NetworkOutputs, lake: LakeOutputs) -> None:
        """Add the function that runs SQL files: nothing else reaches the private database."""
        SourceSql(
            self,
            "Sql",
            file=build_source_sql().path,
            environment={
                "HOST": self.outputs.endpoint,
                "PORT": str(self.outputs.port),
                "DATABASE": self.deployment.plan.source_database,
                "ADMIN_SECRET": self.outputs.admin_secret_arn,
            },
            grants=connect_grants.reads_secrets(
                (self.outputs.admin_secret_arn,), self.outputs.key_arn
            ),
            security_group=network.functions.group_id,
            state=lake.state,
            context=network.context,
        )

    def _server(self, network: NetworkOutputs) -> tuple[str, int, str]:
        """Return endpoint, port and the ARN of the administrator's secret."""
        match self.deployment.aws.source.declared:
            case ExistingSource() as existing:
                return existing.endpoint, existing.port, existing.secret_arn
            case CreatedSource() as sizes:
                server = self._create(sizes, network)
                return server.endpoint, PORT, server.admin_secret_arn

    def _create(
        self, sizes: CreatedSource, network: NetworkOutputs
    ) -> PostgresServer | AuroraCluster:
        group = ServerGroup(self, "Database", vpc_id=network.context.vpc_id, who="source database")
        group.admit(*network.clients, port=PORT)
        server = AuroraCluster if sizes.engine == "aurora" else PostgresServer
        return server(
            self,
            "Server",
            database=self.deployment.plan.source_database,
            sizes=sizes,
            security_group=group.group_id,
            context=network.context,
        )
