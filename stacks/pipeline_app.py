"""All stacks of one deployment: which outputs each receives, and which it is deployed after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import App, Stack, Validations
from cdk_nag import AwsSolutionsChecks

from cdclake.config.deployment import Deployment
from cdclake.plan import Table
from cdclake.stacks.cdc_stack import CdcStack
from cdclake.stacks.connectors_stack import ConnectorsStack
from cdclake.stacks.constructs.lake_formation import grant_in_lake_formation
from cdclake.stacks.delivery_stack import DeliveryStack
from cdclake.stacks.glue_stack import GlueStack
from cdclake.stacks.lake_handles import LakeHandles, lake_handles
from cdclake.stacks.lake_stack import LakeOutputs, LakeStack
from cdclake.stacks.network_stack import NetworkOutputs, NetworkStack
from cdclake.stacks.observability_stack import ObservabilityStack
from cdclake.stacks.optimizers_stack import OptimizersStack
from cdclake.stacks.processing_stack import ProcessingStack
from cdclake.stacks.put_stack import PutStack
from cdclake.stacks.puts_stack import PutsStack
from cdclake.stacks.query_stack import QueryStack
from cdclake.stacks.redrive_puts_stack import RedrivePutsStack
from cdclake.stacks.saved_queries_stack import (
    PutQueriesStack,
    SavedQueriesStack,
    queries_of_put_stacks,
)
from cdclake.stacks.source_stack import SourceOutputs, SourceStack
from cdclake.stacks.streaming_stack import StreamingOutputs, StreamingStack
from cdclake.stacks.tables_stack import TablesStack
from cdclake.stacks.weblogs_stack import WebLogsStack


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """Network and lake, which every deployment has."""

    app: App
    deployment: Deployment
    network: NetworkOutputs
    lake: LakeOutputs
    lake_stack: Stack


def add_stacks(app: App, deployment: Deployment) -> LakeHandles:
    """Add the deployment's stacks to the app; raise InputError if it cannot be deployed."""
    network = NetworkStack(app, deployment).outputs
    lake = LakeStack(app, deployment, context=network.context)
    base = _Base(
        app=app, deployment=deployment, network=network, lake=lake.outputs, lake_stack=lake
    )
    failed_queue, functions = _add_changes(base) if deployment.plan.tables else (None, [])
    functions += _add_put_streams(base)
    observability = ObservabilityStack(
        app, deployment, failed_queue=failed_queue, functions=functions, context=network.context
    )
    _add_queries(base)
    if deployment.lake_formation:
        grant_in_lake_formation(app, location_arn=lake.outputs.warehouse.arn)
    return lake_handles(lake, observability, network=network)


def _add_changes(base: _Base) -> tuple[str, list[str]]:
    """Add the stacks that bring the changes of a database into the lake.

    Return the name of the schedules' dead-letter queue, and the functions that Firehose calls.
    """
    app, deployment, network, lake = base.app, base.deployment, base.network, base.lake
    source_stack = SourceStack(app, deployment, network=network, lake=lake)
    _deploy_after(source_stack, base.lake_stack)
    source = source_stack.outputs
    streaming = StreamingStack(app, deployment, network=network)
    tables = _add_topics(base, streaming.outputs)
    cdc = CdcStack(
        app, deployment, network=network, source=source, streaming=streaming.outputs, lake=lake
    )
    _deploy_after(cdc, base.lake_stack, streaming, *tables)  # the connector creates no topic
    if deployment.plan.connectors:
        connectors = ConnectorsStack(
            app, deployment, network=network, streaming=streaming.outputs, lake=lake
        )
        _deploy_after(connectors, base.lake_stack, streaming, *tables)
    glue = GlueStack(app, deployment, network=network, lake=lake)
    _deploy_after(glue, base.lake_stack)
    processing = ProcessingStack(
        app,
        deployment,
        network=network,
        source=source,
        streaming=streaming.outputs,
        lake=lake,
        glue=glue.outputs,
    )
    _deploy_after(processing, base.lake_stack, glue)
    functions = _add_delivery(base, source, streaming.outputs, cdc, processing)
    _add_optimizers(base, cdc, processing)
    return processing.outputs.failed_queue, functions


def _add_delivery(
    base: _Base, source: SourceOutputs, streaming: StreamingOutputs, *after: Stack
) -> list[str]:
    """Add the stack of Firehose's streams; return the functions that they call."""
    deployment = base.deployment
    if not deployment.plan.deliveries:
        return []
    delivery = DeliveryStack(
        base.app,
        deployment,
        source=source,
        streaming=streaming,
        lake=base.lake,
        context=base.network.context,
    )
    _deploy_after(delivery, base.lake_stack, *after)
    return [delivery.outputs.function_name] if deployment.delivers else []


def _add_topics(base: _Base, streaming: StreamingOutputs) -> list[TablesStack]:
    return [
        TablesStack(
            base.app,
            base.deployment,
            shard=shard,
            tables=tables,
            streaming=streaming,
            kept=base.network.context.kept,
        )
        for shard, tables in _shards(base.deployment.plan.tables)
    ]


def _add_optimizers(base: _Base, cdc: Stack, processing: Stack) -> None:
    """Add optimizers for the shards with a table that Glue maintains."""
    for shard, tables in _shards(base.deployment.plan.all_tables):
        optimized = [table for table in tables if table.maintenance == "glue"]
        if optimized:
            stack = OptimizersStack(
                base.app,
                base.deployment,
                shard=shard,
                tables=optimized,
                lake=base.lake,
                context=base.network.context,
            )
            _deploy_after(stack, base.lake_stack, cdc, processing)


def _add_put_streams(base: _Base) -> list[str]:
    """Add a stack per entry of `weblogs:` and `puts:`; return the functions that Firehose calls."""
    app, deployment, network, lake = base.app, base.deployment, base.network, base.lake
    plan = deployment.plan
    stacks: list[PutStack] = [
        *(WebLogsStack(app, deployment, logs=e, network=network, lake=lake) for e in plan.web_logs),
        *(PutsStack(app, deployment, put=e, network=network, lake=lake) for e in plan.puts),
    ]
    for stack in stacks:
        _deploy_after(stack, base.lake_stack)
    if stacks:
        redrive = RedrivePutsStack(app, deployment, lake=lake, context=network.context)
        _deploy_after(redrive, base.lake_stack, *stacks)
    return [stack.outputs.function_name for stack in stacks]


def _add_queries(base: _Base) -> None:
    """Add workgroup and saved queries if Athena is among the lake's readers."""
    app, deployment = base.app, base.deployment
    if "athena" not in deployment.plan.readers:
        return
    query = QueryStack(
        app, deployment, access_log=base.lake.access_log, context=base.network.context
    )
    for shard, tables in _shards(deployment.plan.all_tables):
        _deploy_after(SavedQueriesStack(app, deployment, shard=shard, tables=tables), query)
    if deployment.plan.put_streams:
        before: Stack = query
        for number, queries in enumerate(queries_of_put_stacks(deployment.plan), start=1):
            stack = PutQueriesStack(app, deployment, number=number, queries=queries)
            _deploy_after(stack, before)
            before = stack


def _deploy_after(stack: Stack, *needed: Stack) -> None:
    """Order stacks whose dependency the CDK cannot see in a reference."""
    for each in needed:
        stack.add_stack_dependency(each)


def _shards(tables: Sequence[Table]) -> list[tuple[int, list[Table]]]:
    declared = sorted({table.shard for table in tables})
    return [(shard, [table for table in tables if table.shard == shard]) for shard in declared]


def check_security(app: App) -> None:
    """Check every resource against cdk-nag's AwsSolutions rules: a finding makes synth fail.

    Accepted findings are suppressed at their resource, with the reason
    (`constructs.nag_suppressions`).
    """
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
