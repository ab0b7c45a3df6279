"""A shard's saved queries in Athena: one of each table, which holds all that is asked of it."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_athena
from constructs import Construct

from cdclake.config.deployment import Deployment
from cdclake.iceberg.saved_queries import as_one_text, saved_queries
from cdclake.plan import Table
from cdclake.stacks.pipeline_stack import PipelineStack
from cdclake.stacks.query_stack import QueryStack


class SavedQueriesStack(PipelineStack):
    """Stacks of their own: with the topics a shard would hold half as many tables."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        shard: int,
        tables: Sequence[Table],
        query: QueryStack,
    ) -> None:
        super().__init__(scope, deployment, f"queries-{shard}", f"saved queries of shard {shard}")
        self.add_stack_dependency(query)
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
