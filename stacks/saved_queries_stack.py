"""The stacks of Athena's saved queries: one per shard, with one saved query per table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from aws_cdk import aws_athena
from constructs import Construct

from cdclake.config.deployment import Deployment
from cdclake.iceberg.as_of_query import AS_OF, as_of_query
from cdclake.iceberg.saved_queries import (
    INCOMPLETE,
    as_one_text,
    put_queries,
    request_queries,
    saved_queries,
)
from cdclake.plan import Plan, Table
from cdclake.stacks.pipeline_stack import PipelineStack

# Limits of Athena and CloudFormation; the rest is what a resource has next to its text.
_MAX_QUERY_BYTES, _MAX_TEMPLATE_BYTES, _REST_BYTES = 262_144, 1_000_000, 700
# CloudFormation's 500 resources, less what a stack may need in addition.
_MAX_PUT_TABLES = 450
# Left out first to last, by all tables of a shard, while its template would be too large.
_OPTIONAL = (AS_OF, INCOMPLETE)


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
        texts = shard_queries(tables, deployment.plan)
        for table in tables:
            described = f"Rows, history and health of {table.source}: select a query to run"
            _save(self, table.name, described, texts[table.name])


def shard_queries(tables: Sequence[Table], plan: Plan) -> dict[str, dict[str, str]]:
    """Return the queries of each table, by its name, that fit Athena and one template."""
    texts = {table.name: _fitting(table, plan) for table in tables}
    for what in _OPTIONAL:
        size = sum(len(json.dumps(as_one_text(each))) + _REST_BYTES for each in texts.values())
        if size > _MAX_TEMPLATE_BYTES:
            for each in texts.values():
                each.pop(what, None)
    return texts


def _fitting(table: Table, plan: Plan) -> dict[str, str]:
    queries = saved_queries(table, plan.lake_database)
    more = {**queries, **as_of_query(table, plan)}
    return more if len(as_one_text(more).encode()) <= _MAX_QUERY_BYTES else queries


class PutQueriesStack(PipelineStack):
    """One of the stacks with saved queries of the tables that producers put records into."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        number: int,
        queries: Mapping[str, dict[str, str]],
    ) -> None:
        part = "queries-puts" if number == 1 else f"queries-puts-{number}"
        super().__init__(scope, deployment, part, "saved queries of put records")
        for name, texts in queries.items():
            _save(self, name, f"Rows and health of {name}: select a query to run", texts)


def queries_of_put_stacks(plan: Plan) -> list[dict[str, dict[str, str]]]:
    """Return the queries by table for each stack of them.

    The entries of the file fill one stack after the other: what a further entry or table displaces
    goes to a later stack, which is deployed after the one that deletes it.
    """
    stacks: list[dict[str, dict[str, str]]] = [{}]
    size = 0
    for entry in _put_queries(plan):
        more = sum(len(json.dumps(as_one_text(each))) + _REST_BYTES for each in entry.values())
        is_full = len(stacks[-1]) + len(entry) > _MAX_PUT_TABLES
        if stacks[-1] and (is_full or size + more > _MAX_TEMPLATE_BYTES):
            stacks.append({})
            size = 0
        stacks[-1].update(entry)
        size += more
    return stacks


def _put_queries(plan: Plan) -> Iterator[dict[str, dict[str, str]]]:
    """Yield the queries of each entry of `weblogs:` and `puts:` by table."""
    database = plan.lake_database
    for logs in plan.web_logs:
        yield {name: request_queries(name, database) for name in logs.tables}
    for put in plan.puts:
        yield {each.name: put_queries(each.name, each.key, database) for each in put.targets}


def _save(stack: PipelineStack, name: str, described: str, queries: dict[str, str]) -> None:
    # Below a construct: the id of a resource directly below a stack loses its underscores, so that
    # `line_items` and `lineitems` would be one.
    aws_athena.CfnNamedQuery(
        Construct(stack, name),
        "Query",
        name=name,
        description=described,
        database=stack.deployment.plan.lake_database,
        work_group=stack.deployment.prefix,
        query_string=as_one_text(queries),
    )
