"""A shard's tables that Glue maintains: what looks after them."""

from __future__ import annotations

from collections.abc import Sequence

from constructs import Construct

from cdclake.config.deployment import Deployment
from cdclake.plan import Table
from cdclake.stacks.cdc_stack import CdcStack
from cdclake.stacks.constructs.custom_resource import CdclakeResource
from cdclake.stacks.constructs.grant import Grant, on_tables
from cdclake.stacks.constructs.table_optimizers import OptimizerRole, TableOptimizers
from cdclake.stacks.lake_stack import LakeStack
from cdclake.stacks.network_stack import NetworkStack
from cdclake.stacks.pipeline_stack import PipelineStack
from cdclake.stacks.processing_stack import ProcessingStack

_MAX_TIMEOUT_S = 900


class OptimizersStack(PipelineStack):
    """Optimizers of log and state of each table with `maintenance: glue`; `maintain_tables` leaves
    those alone.

    It comes last and waits for the tables: an optimizer needs its table, which the stream makes of
    the connector's first events.
    """

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        shard: int,
        tables: Sequence[Table],
        network: NetworkStack,
        lake: LakeStack,
        cdc: CdcStack,
        processing: ProcessingStack,
    ) -> None:
        super().__init__(scope, deployment, f"optimizers-{shard}", f"optimizers of shard {shard}")
        for stack in (lake, cdc, processing):
            self.add_stack_dependency(stack)
        database, ground = deployment.plan.lake_database, network.ground
        names = [name for table in tables for name in (table.changes, table.name)]
        there = CdclakeResource(
            self,
            "Tables",
            what="Tables",
            properties={"Database": database, "Tables": names},
            grants=[_looks_up(database)],
            ground=ground,
            timeout_s=_MAX_TIMEOUT_S,
        )
        role = OptimizerRole(
            self, "Role", database=database, warehouse=lake.warehouse, ground=ground
        )
        for name in names:
            optimizers = TableOptimizers(
                self,
                name,
                database=database,
                table=name,
                location=f"s3://{lake.warehouse.name}/{database}.db/{name}",
                role_arn=role.arn,
            )
            optimizers.node.add_dependency(there)


def _looks_up(database: str) -> Grant:
    return on_tables(
        "glue:GetTable",
        database=database,
        because="the tables of the pipeline's database, which change with the pipeline file",
    )
