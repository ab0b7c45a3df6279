"""The stacks of Athena's saved queries: one per shard, with one saved query per table."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_athena
from constructs import Construct

from cdclake.config.deployment import Deployment
from cdclake.iceberg.saved_queries import (
    INCOMPLETE,
    as_one_text,
    put_queries,
    request_queries,
    saved_queries,
)
from cdclake.plan import Table
from cdclake.stacks.pipeline_stack import PipelineStack

# With that query, a template of more tables could exceed CloudFormation's megabyte.
_MAX_LONG_TEXTS = 250


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
            described = f"Rows, history and health of {table.source}: select a query to run"
            queries = saved_queries(table, database)
            if len(tables) > _MAX_LONG_TEXTS:
                queries.pop(INCOMPLETE, None)
            _save(self, table.name, described, queries)


class PutQueriesStack(PipelineStack):
    """Saved queries of the tables that producers put records into."""

    def __init__(self, scope: Construct, deployment: Deployment) -> None:
        super().__init__(scope, deployment, "queries-puts", "saved queries of put records")
        plan = deployment.plan
        database = plan.lake_database
        queries = {
            **{n: request_queries(n, database) for logs in plan.web_logs for n in logs.tables},
            **{
                table.name: put_queries(table.name, table.key, database)
                for put in plan.puts
                for table in put.targets
            },
        }
        for name, texts in queries.items():
            _save(self, name, f"Rows and health of {name}: select a query to run", texts)


def _save(stack: PipelineStack, name: str, described: str, queries: dict[str, str]) -> None:
    aws_athena.CfnNamedQuery(
        stack,
        name,
        name=name,
        description=described,
        database=stack.deployment.plan.lake_database,
        work_group=stack.deployment.prefix,
        query_string=as_one_text(queries),
    )
