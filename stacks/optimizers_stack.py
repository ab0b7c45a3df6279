"""The optimizers stacks: one per shard, with Glue's table optimizers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from constructs import Construct

from cdclake.config.deployment import Deployment
from cdclake.plan import Table
from cdclake.stacks.awaited_tables import await_tables
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant, on_tables
from cdclake.stacks.constructs.table_optimizers import (
    SNAPSHOT_DAYS,
    OptimizerRole,
    TableOptimizers,
)
from cdclake.stacks.lake_stack import LakeOutputs
from cdclake.stacks.pipeline_stack import PipelineStack


class OptimizersStack(PipelineStack):
    """Optimizers of the changelog and state table of each table with `maintenance: glue`.

    `maintain_tables` skips these tables. The stack waits for them: an optimizer needs its table,
    which the stream creates from the connector's first events, or the table's first poll.
    """

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        shard: int,
        tables: Sequence[Table],
        lake: LakeOutputs,
        context: DeploymentContext,
    ) -> None:
        super().__init__(scope, deployment, f"optimizers-{shard}", f"optimizers of shard {shard}")
        days = _snapshot_days(tables, deployment.plan.stream_readers_hours)
        there = await_tables(
            self,
            "Tables",
            deployment,
            wanted={"Database": lake.database, "Tables": [*days]},
            looks_up=_looks_up(lake.database),
            context=context,
            polled=[table for table in tables if table.delivery == "poll"],
        )
        role = OptimizerRole(
            self,
            "Role",
            database=lake.database,
            warehouse=lake.warehouse,
            lake_formation=deployment.lake_formation,
            context=context,
        )
        for name, snapshot_days in days.items():
            optimizers = TableOptimizers(
                self,
                name,
                database=lake.database,
                table=name,
                location=lake.location(name),
                role=role,
                snapshot_days=snapshot_days,
            )
            optimizers.node.add_dependency(there)


def _snapshot_days(tables: Sequence[Table], readers_hours: int) -> dict[str, int]:
    """Return the days for which Glue keeps snapshots and their files, by Iceberg table."""
    changelog_days = max(SNAPSHOT_DAYS, math.ceil(readers_hours / 24))
    days: dict[str, int] = {}
    for table in tables:
        days |= {table.changes: changelog_days, table.name: SNAPSHOT_DAYS}
    return days


def _looks_up(database: str) -> Grant:
    return on_tables(
        "glue:GetTable",
        database=database,
        because="the tables of the pipeline's database, which change with the pipeline file",
    )
