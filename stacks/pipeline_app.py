"""Every stack of one deployment, in the order in which one needs the other."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from cdclake.config.deployment import Deployment
from cdclake.plan import Plan, Table
from cdclake.web_logs import refuse_to_deploy
from stacks.cdc_stack import CdcStack
from stacks.delivery_stack import DeliveryStack
from stacks.lake_stack import LakeStack
from stacks.network_stack import NetworkStack
from stacks.observability_stack import ObservabilityStack
from stacks.optimizers_stack import OptimizersStack
from stacks.processing_stack import ProcessingStack
from stacks.query_stack import QueryStack
from stacks.saved_queries_stack import SavedQueriesStack
from stacks.source_stack import SourceStack
from stacks.streaming_stack import StreamingStack
from stacks.tables_stack import TablesStack


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacks:
    """The stacks of one deployment."""

    network: NetworkStack
    source: SourceStack
    streaming: StreamingStack
    tables: tuple[TablesStack, ...]
    lake: LakeStack
    cdc: CdcStack
    processing: ProcessingStack
    delivery: DeliveryStack | None
    optimizers: tuple[OptimizersStack, ...]
    observability: ObservabilityStack
    queries: tuple[SavedQueriesStack, ...]


def add_stacks(app: App, deployment: Deployment) -> Stacks:
    """Add the deployment's stacks to the app; InputError if it asks for what is not built."""
    refuse_to_deploy(deployment.plan.web_logs)
    network = NetworkStack(app, deployment)
    source = SourceStack(app, deployment, network=network)
    streaming = StreamingStack(app, deployment, network=network)
    tables = tuple(
        TablesStack(
            app, deployment, shard=shard, tables=listed, network=network, streaming=streaming
        )
        for shard, listed in _shards(deployment.plan)
    )
    cdc = CdcStack(
        app, deployment, network=network, source=source, streaming=streaming, tables=tables
    )
    lake = LakeStack(app, deployment, network=network)
    processing = ProcessingStack(
        app, deployment, network=network, source=source, streaming=streaming, lake=lake
    )
    delivery = None
    if deployment.delivers:
        delivery = DeliveryStack(
            app,
            deployment,
            network=network,
            streaming=streaming,
            lake=lake,
            cdc=cdc,
            processing=processing,
        )
    return Stacks(
        network=network,
        source=source,
        streaming=streaming,
        tables=tables,
        lake=lake,
        cdc=cdc,
        processing=processing,
        delivery=delivery,
        optimizers=_add_optimizers(app, deployment, network, lake, processing),
        observability=ObservabilityStack(
            app, deployment, network=network, processing=processing, delivery=delivery
        ),
        queries=_add_queries(app, deployment, network, lake),
    )


def _add_optimizers(
    app: App,
    deployment: Deployment,
    network: NetworkStack,
    lake: LakeStack,
    processing: ProcessingStack,
) -> tuple[OptimizersStack, ...]:
    """Only for shards with a table that Glue maintains."""
    return tuple(
        OptimizersStack(
            app,
            deployment,
            shard=shard,
            tables=optimized,
            network=network,
            lake=lake,
            processing=processing,
        )
        for shard, listed in _shards(deployment.plan)
        if (optimized := [table for table in listed if table.maintenance == "glue"])
    )


def _add_queries(
    app: App, deployment: Deployment, network: NetworkStack, lake: LakeStack
) -> tuple[SavedQueriesStack, ...]:
    """Only where the file lists Athena among the lake's readers."""
    if "athena" not in deployment.plan.readers:
        return ()
    query = QueryStack(app, deployment, network=network, lake=lake)
    return tuple(
        SavedQueriesStack(app, deployment, shard=shard, tables=listed, query=query)
        for shard, listed in _shards(deployment.plan)
    )


def _shards(plan: Plan) -> list[tuple[int, list[Table]]]:
    declared = sorted({table.shard for table in plan.tables})
    return [(shard, [table for table in plan.tables if table.shard == shard]) for shard in declared]


def check_security(app: App) -> None:
    """Have cdk-nag's AwsSolutions rules look at every resource: a finding makes synth fail.

    What is right as it is stands beside its resource, with the reason (`constructs.accepted`).
    """
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
