"""The source database: Aurora PostgreSQL Serverless v2 with logical replication."""

from __future__ import annotations

from typing import Any

from aws_cdk import RemovalPolicy, aws_rds
from constructs import Construct

from cdclake import naming
from cdclake.config import versions
from cdclake.config.aws_model import CreatedSource
from cdclake.config.database_parameters import ENGINES, database_parameters, parameter_family
from cdclake.config.source_metrics import aurora_cluster
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.log_group import LogGroup
from cdclake.stacks.constructs.nag_suppressions import suppress
from cdclake.stacks.constructs.postgres_server import ADMIN, PORT, add_subnets, keep_data

_ENGINE = ENGINES["aurora"]
_Cluster = aws_rds.CfnDBCluster


class AuroraCluster(Construct):
    """Encrypted cluster with enforced TLS and backups: one writer, and a reader if `multi_az`.

    Logical replication is a parameter of the cluster. The cluster's volume grows by itself, so
    unread WAL of the slot fills no disk, but is billed: the alarm `slot-lag` watches it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        database: str,
        sizes: CreatedSource,
        security_group: str,
        context: DeploymentContext,
    ) -> None:
        super().__init__(scope, construct_id)
        self._context, self._sizes = context, sizes
        cluster = _Cluster(
            self,
            "Cluster",
            # With a fixed name a replacement fails instead of going unnoticed.
            db_cluster_identifier=aurora_cluster(context.prefix),
            database_name=database,
            engine=_ENGINE,
            engine_version=versions.POSTGRES,
            db_cluster_parameter_group_name=self._add_parameters().ref,
            **self._placed(security_group),
            deletion_protection=context.protect,
            preferred_maintenance_window=sizes.maintenance_window,
            backup_retention_period=sizes.backup_days,
            copy_tags_to_snapshot=True,
            storage_encrypted=True,
            kms_key_id=context.key_arn,
            serverless_v2_scaling_configuration=_scaling(sizes),
            enable_cloudwatch_logs_exports=["postgresql"],
            master_username=ADMIN,
            manage_master_user_password=True,
            master_user_secret=_Cluster.MasterUserSecretProperty(kms_key_id=context.key_arn),
        )
        cluster.node.add_dependency(self._add_log())
        keep_data(cluster, context)
        _accept_passwords(cluster)
        self._add_instances(cluster)
        self.endpoint = cluster.attr_endpoint_address
        self.admin_secret_arn = cluster.attr_master_user_secret_secret_arn

    def _placed(self, security_group: str) -> dict[str, Any]:
        return {
            "db_subnet_group_name": add_subnets(self, self._context).ref,
            "vpc_security_group_ids": [security_group],
            "port": PORT,
        }

    def _add_log(self) -> LogGroup:
        name = f"/aws/rds/cluster/{aurora_cluster(self._context.prefix)}/postgresql"
        return LogGroup(self, "LogPostgresql", context=self._context, name=name)

    def _add_parameters(self) -> aws_rds.CfnDBClusterParameterGroup:
        return aws_rds.CfnDBClusterParameterGroup(
            self,
            "Parameters",
            family=parameter_family(self._sizes),
            description="Logical replication over TLS",
            parameters=database_parameters(self._sizes),
        )

    def _add_instances(self, cluster: aws_rds.CfnDBCluster) -> None:
        """Add the first writer, and a reader in another zone; a failover swaps their roles."""
        writer = naming.source_server(self._context.prefix)
        names = [writer, *([f"{writer}-standby"] if self._sizes.multi_az else [])]
        for name in names:
            instance = aws_rds.CfnDBInstance(
                self,
                "Writer" if name == writer else "Standby",
                db_instance_identifier=name,
                db_cluster_identifier=cluster.ref,
                db_instance_class="db.serverless",
                engine=_ENGINE,
                auto_minor_version_upgrade=True,
                publicly_accessible=False,
                enable_performance_insights=True,
                performance_insights_kms_key_id=self._context.key_arn,
            )
            instance.apply_removal_policy(RemovalPolicy.DESTROY)  # the cluster holds the data


def _accept_passwords(cluster: aws_rds.CfnDBCluster) -> None:
    suppress(
        cluster,
        "RDS6",
        "the connector and the jobs sign in with a password from Secrets Manager, over TLS",
    )


def _scaling(
    sizes: CreatedSource,
) -> aws_rds.CfnDBCluster.ServerlessV2ScalingConfigurationProperty:
    least, most = sizes.capacity
    return _Cluster.ServerlessV2ScalingConfigurationProperty(min_capacity=least, max_capacity=most)
