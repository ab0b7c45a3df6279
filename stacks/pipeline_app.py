"""Every stack of one deployment, in the order in which one needs the other."""

from __future__ import annotations

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from cdclake.config.deployment import Deployment
from cdclake.plan import Plan, Table
from cdclake.stacks.cdc_stack import CdcStack
from cdclake.stacks.delivery_stack import DeliveryStack
from cdclake.stacks.lake_stack import LakeStack
from cdclake.stacks.network_stack import NetworkStack
from cdclake.stacks.observability_stack import ObservabilityStack
from cdclake.stacks.optimizers_stack import OptimizersStack
from cdclake.stacks.processing_stack import ProcessingStack
from cdclake.stacks.query_stack import QueryStack
from cdclake.stacks.saved_queries_stack import SavedQueriesStack
from cdclake.stacks.source_stack import SourceStack
from cdclake.stacks.streaming_stack import StreamingStack
from cdclake.stacks.tables_stack import TablesStack
from cdclake.stacks.weblogs_stack import WebLogsStack


def add_stacks(app: App, deployment: Deployment) -> None:
    """Add the deployment's stacks to the app; InputError if it asks for what cannot be."""
    network = NetworkStack(app, deployment)
    lake = LakeStack(app, deployment, network=network)
    processing = delivery = None
    if deployment.plan.tables:
        processing, delivery = _add_changes(app, deployment, network, lake)
    web = [
        WebLogsStack(app, deployment, logs=logs, network=network, lake=lake)
        for logs in deployment.plan.web_logs
    ]
    functions = [each.function_name for each in web]
    if delivery is not None and deployment.delivers:
        functions.insert(0, delivery.function_name)
    ObservabilityStack(app, deployment, network=network, processing=processing, functions=functions)
    _add_queries(app, deployment, network, lake)


def _add_changes(
    app: App, deployment: Deployment, network: NetworkStack, lake: LakeStack
) -> tuple[ProcessingStack, DeliveryStack | None]:
    """What brings the changes of a database into the lake."""
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
    processing = ProcessingStack(
        app, deployment, network=network, source=source, streaming=streaming, lake=lake
    )
    delivery = None
    if deployment.plan.deliveries:
        delivery = DeliveryStack(
            app,
            deployment,
            network=network,
            streaming=streaming,
            lake=lake,
            cdc=cdc,
            processing=processing,
        )
    _add_optimizers(app, deployment, network, lake, cdc, processing)
    return processing, delivery


def _add_optimizers(
    app: App,
    deployment: Deployment,
    network: NetworkStack,
    lake: LakeStack,
    cdc: CdcStack,
    processing: ProcessingStack,
) -> None:
    """Only for shards with a table that Glue maintains."""
    for shard, listed in _shards(deployment.plan):
        optimized = [table for table in listed if table.maintenance == "glue"]
        if optimized:
            OptimizersStack(
                app,
                deployment,
                shard=shard,
                tables=optimized,
                network=network,
                lake=lake,
                cdc=cdc,
                processing=processing,
            )


def _add_queries(app: App, deployment: Deployment, network: NetworkStack, lake: LakeStack) -> None:
    """Only where the file lists Athena among the lake's readers."""
    if "athena" not in deployment.plan.readers:
        return
    query = QueryStack(app, deployment, network=network, lake=lake)
    for shard, listed in _shards(deployment.plan):
        SavedQueriesStack(app, deployment, shard=shard, tables=listed, query=query)


def _shards(plan: Plan) -> list[tuple[int, list[Table]]]:
    declared = sorted({table.shard for table in plan.tables})
    return [(shard, [table for table in plan.tables if table.shard == shard]) for shard in declared]


def check_security(app: App) -> None:
    """Have cdk-nag's AwsSolutions rules look at every resource: a finding makes synth fail.

    What is right as it is stands beside its resource, with the reason (`constructs.accepted`).
    """
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
