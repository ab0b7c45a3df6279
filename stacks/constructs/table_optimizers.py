"""Glue's table optimizers: compaction, snapshot expiration and orphan file deletion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_cdk import Aws, aws_glue
from constructs import Construct

from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant, arn, on_tables, through_s3
from cdclake.stacks.constructs.lake_bucket import BucketReference
from cdclake.stacks.constructs.service_role import ServiceRole

# The snapshot with the stamp of the last append must be retained: only compactions follow it, and
# never as many as this.
_SNAPSHOTS, SNAPSHOT_DAYS = 100, 5
_ORPHAN_DAYS = 3  # longer than any commit takes
_Optimizer = aws_glue.CfnTableOptimizer
_LOGS = ("iceberg-compaction", "iceberg-retention", "iceberg-orphan-file-deletion")


class OptimizerRole(ServiceRole):
    """Role that Glue assumes to maintain tables of one database; names may hold `*`.

    Source: Glue's user guide, "Table optimization prerequisites", narrowed to database and prefix.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        database: str,
        tables: Sequence[str] = ("*",),
        warehouse: BucketReference,
        lake_formation: bool,
        context: DeploymentContext,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            service="glue",
            for_arn=f"glue:{Aws.REGION}:{Aws.ACCOUNT_ID}:*",
            statements=[
                Grant(
                    actions=["s3:DeleteObject", "s3:GetObject", "s3:PutObject"],
                    on=[f"{warehouse.arn}/{database}.db/{table}/*" for table in tables],
                    because="the files of the pipeline's own tables, named by Iceberg",
                ),
                Grant(actions=["s3:GetBucketLocation", "s3:ListBucket"], on=[warehouse.arn]),
                on_tables(
                    "glue:GetTable",
                    "glue:UpdateTable",
                    database=database,
                    tables=tables,
                    because="the optimized tables of the pipeline's own database",
                ),
                Grant(
                    actions=["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"],
                    on=[arn("logs", f"log-group:/aws-glue/{each}/logs:*") for each in _LOGS],
                    because="log groups that Glue names itself, one per optimizer type",
                ),
                through_s3(context.key_arn),
                *([_gets_data_access()] if lake_formation else []),
            ],
        )


def _gets_data_access() -> Grant:
    return Grant(
        actions=["lakeformation:GetDataAccess"],
        on=["*"],
        because="Lake Formation has no resource-level permissions; its own grants limit the tables",
    )


class TableOptimizers(Construct):
    """The three optimizers of one table, which must exist before them."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        database: str,
        table: str,
        location: str,
        role: ServiceRole,
        snapshot_days: int = SNAPSHOT_DAYS,
    ) -> None:
        super().__init__(scope, construct_id)
        role.users.append(self)  # Glue may validate the role at once
        for kind, what in _configurations(location, snapshot_days).items():
            _Optimizer(
                self,
                kind.title().replace("_", ""),
                catalog_id=Aws.ACCOUNT_ID,
                database_name=database,
                table_name=table,
                type=kind,
                table_optimizer_configuration=_Optimizer.TableOptimizerConfigurationProperty(
                    enabled=True, role_arn=role.arn, **what
                ),
            )


def _configurations(location: str, snapshot_days: int) -> dict[str, dict[str, Any]]:
    """Return the specific configuration of each optimizer."""
    compaction = _Optimizer.CompactionConfigurationProperty(
        iceberg_configuration=_Optimizer.IcebergCompactionConfigurationProperty(strategy="binpack")
    )
    retention = _Optimizer.RetentionConfigurationProperty(
        iceberg_configuration=_Optimizer.IcebergRetentionConfigurationProperty(
            snapshot_retention_period_in_days=snapshot_days,
            number_of_snapshots_to_retain=_SNAPSHOTS,
            clean_expired_files=True,
        )
    )
    orphans = _Optimizer.OrphanFileDeletionConfigurationProperty(
        iceberg_configuration=_Optimizer.IcebergConfigurationProperty(
            orphan_file_retention_period_in_days=_ORPHAN_DAYS, location=location
        )
    )
    return {
        "compaction": {"compaction_configuration": compaction},
        "retention": {"retention_configuration": retention},
        "orphan_file_deletion": {"orphan_file_deletion_configuration": orphans},
    }
