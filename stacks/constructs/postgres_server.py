"""The source database: RDS for PostgreSQL with logical replication."""

from __future__ import annotations

from typing import Any

from aws_cdk import CfnDeletionPolicy, RemovalPolicy, aws_rds
from constructs import Construct

from cdclake import naming
from cdclake.config import versions
from cdclake.config.aws_model import CreatedSource
from cdclake.config.database_parameters import database_parameters, parameter_family
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.log_group import LogGroup
from cdclake.stacks.constructs.nag_suppressions import suppress

PORT = 5432
ADMIN = "cdclake_admin"
_LOGS = ("postgresql", "upgrade")


class PostgresServer(Construct):
    """Encrypted instance with enforced TLS, backups and a WAL limit for the slot.

    RDS generates the administrator's password, stores it in its own secret and rotates it: no
    template contains it.
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
        self._context = context
        instance = aws_rds.CfnDBInstance(
            self,
            "Instance",
            # With a fixed name a replacement fails instead of going unnoticed.
            db_instance_identifier=naming.source_server(context.prefix),
            db_name=database,
            **_versioned(sizes.maintenance_window),
            db_parameter_group_name=self._add_parameters(sizes).ref,
            db_subnet_group_name=add_subnets(self, context).ref,
            vpc_security_groups=[security_group],
            publicly_accessible=False,
            port=str(PORT),
            deletion_protection=context.protect,
            **_administered(context.key_arn),
            **_storage_encryption(context.key_arn),
            # Backups of an unprotected database would be billed after its deletion.
            delete_automated_backups=not context.protect,
            **_sizes(sizes),
        )
        # cfn-lint's list holds minor versions only; the major version alone is RDS's documented way
        # to get its current default.
        instance.add_metadata("cfn-lint", {"config": {"ignore_checks": ["W3691"]}})
        self._add_logs(instance)
        self._protect(instance, sizes)
        self.endpoint = instance.attr_endpoint_address
        self.admin_secret_arn = instance.attr_master_user_secret_secret_arn

    def _add_parameters(self, sizes: CreatedSource) -> aws_rds.CfnDBParameterGroup:
        return aws_rds.CfnDBParameterGroup(
            self,
            "Parameters",
            family=parameter_family(sizes),
            description="Logical replication over TLS, with bounded WAL for the slot",
            parameters=database_parameters(sizes),
        )

    def _add_logs(self, instance: aws_rds.CfnDBInstance) -> None:
        """Add the log groups: RDS would create them without retention and without our key."""
        instance.enable_cloudwatch_logs_exports = list(_LOGS)
        for log in _LOGS:
            name = f"/aws/rds/instance/{naming.source_server(self._context.prefix)}/{log}"
            group = LogGroup(self, f"Log{log.capitalize()}", context=self._context, name=name)
            instance.node.add_dependency(group)

    def _protect(self, instance: aws_rds.CfnDBInstance, sizes: CreatedSource) -> None:
        keep_data(instance, self._context)
        suppress(
            instance,
            "RDS11",
            "the default port: only the security groups of this pipeline are admitted, over TLS",
        )
        if not sizes.multi_az:
            suppress(instance, "RDS3", "the pipeline file sets `multi_az: false`")


def add_subnets(scope: Construct, context: DeploymentContext) -> aws_rds.CfnDBSubnetGroup:
    """Add the group of the deployment's private subnets."""
    return aws_rds.CfnDBSubnetGroup(
        scope,
        "Subnets",
        db_subnet_group_description="The private subnets of the lake",
        subnet_ids=list(context.subnet_ids),
    )


def keep_data(
    database: aws_rds.CfnDBInstance | aws_rds.CfnDBCluster, context: DeploymentContext
) -> None:
    """Leave a snapshot when the database is deleted, unless the file says `protect: false`."""
    protect = context.protect
    database.apply_removal_policy(RemovalPolicy.SNAPSHOT if protect else RemovalPolicy.DESTROY)
    database.cfn_options.update_replace_policy = CfnDeletionPolicy.SNAPSHOT
    if not protect:
        suppress(database, "RDS10", "the pipeline file sets `protect: false`")


def _versioned(maintenance_window: str) -> dict[str, Any]:
    return {
        "engine": "postgres",
        "engine_version": versions.POSTGRES,
        "auto_minor_version_upgrade": True,
        "preferred_maintenance_window": maintenance_window,
        "allow_major_version_upgrade": False,
    }


def _administered(key_arn: str) -> dict[str, Any]:
    secret = aws_rds.CfnDBInstance.MasterUserSecretProperty(kms_key_id=key_arn)
    return {
        "master_username": ADMIN,
        "manage_master_user_password": True,
        "master_user_secret": secret,
    }


def _storage_encryption(key_arn: str) -> dict[str, Any]:
    return {
        "storage_encrypted": True,
        "kms_key_id": key_arn,
        "copy_tags_to_snapshot": True,
        "enable_performance_insights": True,
        "performance_insights_kms_key_id": key_arn,
    }


def _sizes(declared: CreatedSource) -> dict[str, Any]:
    return {
        "db_instance_class": declared.instance,
        "allocated_storage": str(declared.storage_gb),
        "max_allocated_storage": declared.max_storage_gb,
        "storage_type": "gp3",
        "multi_az": declared.multi_az,
        "backup_retention_period": declared.backup_days,
    }
