"""The lake stack: the buckets of the tables' files and state, and the Glue database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aws_cdk import Aws, aws_glue
from constructs import Construct

from cdclake import naming
from cdclake.config.deployment import REPORT_DAYS, RESTORABLE_DAYS, Deployment
from cdclake.control_objects import FORGETS
from cdclake.redrive.objects import failed_prefixes
from cdclake.stacks.constructs import job_grants
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant, on_tables
from cdclake.stacks.constructs.lake_bucket import (
    INTELLIGENT_TIERING,
    AccessLog,
    BucketReference,
    LakeBucket,
    expiring_folder,
    overwritten_folder,
    short_lived_folder,
)
from cdclake.stacks.constructs.lake_formation import RegisteredLocation
from cdclake.stacks.pipeline_stack import PipelineStack


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeOutputs:
    """Buckets and database of the lake, and the grants on its tables."""

    warehouse: BucketReference
    state: BucketReference
    access_log: str  # name of the bucket that stores S3 access logs
    database: str

    def location(self, table: str) -> str:
        """Return the S3 location of a table."""
        return f"s3://{self.warehouse.name}/{self.database}.db/{table}"

    def grant_read_tables(self) -> list[Grant]:
        """Allow reading every table."""
        files = "the files of the pipeline's database"
        return [
            job_grants.reads_objects(self.warehouse, f"{self.database}.db", files),
            job_grants.looks_up_tables(self.database),
        ]

    def grant_commit_tables(self, *, creates: bool = False) -> list[Grant]:
        """Allow reading every table and committing to it, and creating tables on request."""
        files = "the files of the pipeline's database"
        return [
            job_grants.keeps_objects(self.warehouse, f"{self.database}.db", because=files),
            job_grants.lists(self.warehouse),
            job_grants.uses_tables(self.database, creates=creates),
        ]

    def grant_publish_copies(self) -> list[Grant]:
        """Allow reading every table, and writing copies of them with their catalog entries.

        Hudi writes by S3A, which probes the folder of the database, too.
        """
        folder, files = f"{self.database}.db", "the files of the pipeline's database"
        return [
            *job_grants.keeps_files_by_s3a(self.warehouse, folder, files),
            job_grants.lists(self.warehouse),
            job_grants.uses_tables(self.database, creates=True, partitions=True),
        ]

    def grant_erase_objects(self) -> list[Grant]:
        """Allow reading everything in both buckets, and deleting versions of tables' files.

        The keys to erase are in control objects, whose versions it deletes, too.
        """
        files, keys = f"{self.database}.db", f"{naming.CONTROL_PREFIX}/{FORGETS}"
        return [
            *job_grants.reads_versions(self.warehouse),
            *job_grants.reads_versions(self.state),
            job_grants.lists(self.warehouse),
            job_grants.deletes_versions(self.warehouse, files, "files that had erased rows"),
            job_grants.deletes_versions(self.state, keys, "each order has a name that is made up"),
            job_grants.looks_up_tables(self.database),
            job_grants.lists_tables(self.database),
        ]

    def grant_erase_failed(self, folders: Iterable[str]) -> list[Grant]:
        """Allow rewriting objects below these error prefixes of Firehose, and deleting versions."""
        made_up = "failed records by day, in objects with names that Firehose generates"
        return [
            Grant(
                actions=["s3:DeleteObject", "s3:DeleteObjectVersion", "s3:PutObject"],
                on=[f"{self.state.arn}/{prefix}*" for prefix in failed_prefixes(folder)],
                because=made_up,
            )
            for folder in sorted(folders)
        ]

    def grant_append_sinks(self, tables: Sequence[str]) -> list[Grant]:
        """Allow a sink to create the tables that it appends to, and to commit to them.

        `tables` may be a pattern. Before it creates a table it asks for its database again, which
        exists.
        """
        because = "Iceberg names the files of a table; its folder is fixed"
        return [
            job_grants.keeps_objects(
                self.warehouse, *(f"{self.database}.db/{each}" for each in tables), because=because
            ),
            job_grants.lists(self.warehouse),
            on_tables(
                *("glue:CreateDatabase", "glue:GetDatabase"),
                *("glue:CreateTable", "glue:GetTable", "glue:UpdateTable"),
                database=self.database,
                because="the sink's own tables",
                tables=tables,
            ),
        ]


class LakeStack(PipelineStack):
    """Buckets and database. The jobs create the tables and evolve their schemas.

    CloudFormation must not own the schemas too: it would revert the jobs' changes.
    """

    def __init__(
        self, scope: Construct, deployment: Deployment, *, context: DeploymentContext
    ) -> None:
        super().__init__(scope, deployment, "lake", "buckets and Glue database of the lake")
        classes = deployment.aws.storage
        access_log = AccessLog(self, "AccessLog", tiers=classes.access_log, context=context)
        # Exported even if no query stack imports it: a deployed one may still do so.
        self.export_value(access_log.name)
        warehouse = LakeBucket(
            self,
            "Warehouse",
            access_log=access_log.name,
            restorable_days=RESTORABLE_DAYS,
            moved=INTELLIGENT_TIERING if classes.warehouse == "intelligent_tiering" else (),
            context=context,
        )
        prefixes = dict.fromkeys(stream.error_prefix for stream in deployment.plan.streams)
        # Plan, control objects and checkpoints: small, and overwritten all the time.
        state = LakeBucket(
            self,
            "State",
            access_log=access_log.name,
            restorable_days=RESTORABLE_DAYS,
            folders=[
                *(expiring_folder(p, deployment.aws.failed_days, classes.failed) for p in prefixes),
                overwritten_folder(naming.CHECKPOINT_PREFIX),
                short_lived_folder(f"{naming.CONTROL_PREFIX}/{FORGETS}"),
                short_lived_folder(f"{naming.CONTROL_PREFIX}/{naming.REPORTS}", REPORT_DAYS),
                short_lived_folder(naming.SOURCE_SQL_PREFIX),  # left by interrupted commands
            ],
            context=context,
        )
        self.outputs = LakeOutputs(
            warehouse=warehouse.seen_from_elsewhere(),
            state=state.seen_from_elsewhere(),
            access_log=access_log.name,
            database=deployment.plan.lake_database,
        )
        self.warehouse = BucketReference(warehouse.name, warehouse.arn)
        self._add_database(context)

    def _add_database(self, context: DeploymentContext) -> None:
        deployment = self.deployment
        if deployment.lake_formation:
            RegisteredLocation(self, "Location", warehouse=self.warehouse, context=context)
        database = aws_glue.CfnDatabase(
            self,
            "Database",
            catalog_id=Aws.ACCOUNT_ID,
            database_input=aws_glue.CfnDatabase.DatabaseInputProperty(
                name=deployment.plan.lake_database,
                description=f"Tables of the cdclake pipeline {deployment.plan.name}",
                location_uri=f"s3://{self.warehouse.name}/{deployment.plan.lake_database}.db",
            ),
        )
        database.apply_removal_policy(context.kept)
