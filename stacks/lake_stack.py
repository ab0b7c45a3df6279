"""The lake stack: where the tables' files are, and the database in which they are found."""

from __future__ import annotations

from aws_cdk import Aws, aws_glue
from constructs import Construct

from cdclake.config.deployment import Deployment
from cdclake.stacks.constructs.lake_bucket import AccessLog, LakeBucket
from cdclake.stacks.network_stack import NetworkStack
from cdclake.stacks.pipeline_stack import PipelineStack

# A table's file that was deleted by mistake comes back; Iceberg itself keeps older snapshots.
_RESTORABLE_DAYS = 7


class LakeStack(PipelineStack):
    """Buckets and database. The tables in it are made by the jobs, which also evolve them.

    One owner of a schema is enough: CloudFormation would put back the columns that it knows.
    """

    def __init__(self, scope: Construct, deployment: Deployment, *, network: NetworkStack) -> None:
        super().__init__(scope, deployment, "lake", "buckets and Glue database of the lake")
        ground = network.ground
        self.access_log = access_log = AccessLog(self, "AccessLog", ground=ground)
        self.export_value(access_log.name)  # also without a stack of queries, which may stand yet
        warehouse = LakeBucket(
            self,
            "Warehouse",
            access_log=access_log,
            restorable_days=_RESTORABLE_DAYS,
            ground=ground,
        )
        # Plan, control objects, checkpoints: small, and written anew all the time.
        state = LakeBucket(
            self,
            "State",
            access_log=access_log,
            restorable_days=_RESTORABLE_DAYS,
            expiring={s.error_prefix: deployment.aws.failed_days for s in deployment.plan.streams},
            ground=ground,
        )
        self.warehouse, self.state = warehouse.seen_from_elsewhere(), state.seen_from_elsewhere()
        database = aws_glue.CfnDatabase(
            self,
            "Database",
            catalog_id=Aws.ACCOUNT_ID,
            database_input=aws_glue.CfnDatabase.DatabaseInputProperty(
                name=deployment.plan.lake_database,
                description=f"Tables of the cdclake pipeline {deployment.plan.name}",
                location_uri=f"s3://{warehouse.name}/{deployment.plan.lake_database}.db",
            ),
        )
        database.apply_removal_policy(ground.kept)
