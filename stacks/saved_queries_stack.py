"""The stacks of Athena's saved queries: one per shard, with one saved query per table."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_athena
from constructs import Construct

from cdclake.config.deployment import Deployment
from cdclake.iceberg.saved_queries import as_one_text, saved_queries
from cdclake.plan import Table
from cdclake.stacks.pipeline_stack import PipelineStack


class SavedQueriesStack(PipelineStack):
    """Saved queries of one shard.

    They are not in the shard's stack of topics, which would then hold half as many tables.
    """

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        shard: int,
        tables: Sequence[Table],
    ) -> None:
        super().__init__(scope, deployment, f"queries-{shard}", f"saved queries of shard {shard}")
        database = deployment.plan.lake_database
        for table in tables:
            aws_athena.CfnNamedQuery(
                self,
                table.name,
                name=table.name,
                description=f"Rows, history and health of {table.source}: select a query to run",
                database=database,
                work_group=deployment.prefix,
                query_string=as_one_text(saved_queries(table, database)),
            )
