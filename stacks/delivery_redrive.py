"""The redrive: a function that operators invoke, and the stream that appends its rows."""

from __future__ import annotations

from constructs import Construct

from cdclake import naming
from cdclake.config.deployment import Deployment
from cdclake.firehose.redrive_stream import FUNCTION, redrive_stream
from cdclake.firehose.stream import DeliveryStream
from cdclake.stacks.bundles import build_firehose_redrive, build_firehose_unwrap
from cdclake.stacks.changes_access import ChangesAccess
from cdclake.stacks.constructs import firehose_grants, job_grants
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.firehose_source import DirectPutSource
from cdclake.stacks.constructs.firehose_stream import (
    Collecting,
    FirehoseDestination,
    FirehoseStream,
    by_function,
)
from cdclake.stacks.constructs.function import LambdaFunction
from cdclake.stacks.constructs.grant import Grant, arn, through_s3
from cdclake.stacks.constructs.log_group import LogGroup
from cdclake.stacks.lake_stack import LakeOutputs

_TIMEOUT_S = 900  # Lambda's maximum
_UNWRAP_TIMEOUT_S = 300  # the longest that Firehose waits
_MEMORY_MB = 512  # for the records of a request and the oversized records of an object


class DeliveryRedrive(Construct):
    """Redrive of a plan with at least one delivery stream."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        deployment: Deployment,
        lake: LakeOutputs,
        access: ChangesAccess,
        log: LogGroup,
        context: DeploymentContext,
    ) -> None:
        super().__init__(scope, construct_id)
        stream = redrive_stream(deployment.plan)
        assert stream is not None
        self._deployment, self._lake, self._context = deployment, lake, context
        self._add_stream(stream, self._add_unwrap(), log)
        self._add_function(stream, access)

    def _add_unwrap(self) -> str:
        """Add the function that unpacks redriven records; return its ARN."""
        return LambdaFunction(
            self,
            "Unwrap",
            module=FUNCTION,
            code=build_firehose_unwrap(self._deployment.plan).path,
            environment={},
            grants=[],
            timeout_s=_UNWRAP_TIMEOUT_S,
            memory_mb=_MEMORY_MB,
            context=self._context,
        ).arn

    def _add_stream(self, stream: DeliveryStream, unwrap: str, log: LogGroup) -> None:
        plan = self._deployment.plan
        FirehoseStream(
            self,
            "Stream",
            name=self._stream_name,
            source=DirectPutSource(key_arn=self._context.key_arn),
            into=FirehoseDestination(
                database=plan.lake_database,
                tables=[*(plan.table(each).changes for each in stream.tables), naming.QUARANTINE],
                writable=[naming.changes_name("*"), naming.QUARANTINE],
                warehouse=self._lake.warehouse,
                state=self._lake.state,
            ),
            collecting=Collecting.of(stream),
            processors=[
                by_function(
                    unwrap,
                    seconds=stream.function_seconds,
                    mib=stream.function_mib,
                    retries=stream.function_retries,
                )
            ],
            calls=[firehose_grants.calls(unwrap)],
            log=log,
            context=self._context,
        )

    def _add_function(self, stream: DeliveryStream, access: ChangesAccess) -> None:
        state, prefix = self._lake.state, self._deployment.prefix
        LambdaFunction(
            self,
            "Function",
            # Operators and the CLI invoke it by name.
            name=naming.redrive_function(prefix),
            module="firehose_redrive",
            code=build_firehose_redrive(self._deployment.plan).path,
            environment={"BUCKET": state.name, "PREFIX": prefix, **access.environment},
            grants=[
                *firehose_grants.moves_failed(state, stream.error_prefix),
                firehose_grants.deletes_erased(state, stream.error_prefix),
                through_s3(self._context.key_arn),
                *access.grants,
                job_grants.lists_tables(self._deployment.plan.lake_database),
                Grant(
                    actions=["firehose:PutRecordBatch"],
                    on=[arn("firehose", f"deliverystream/{self._stream_name}")],
                ),
            ],
            timeout_s=_TIMEOUT_S,
            memory_mb=_MEMORY_MB,
            context=self._context,
        )

    @property
    def _stream_name(self) -> str:
        return naming.delivery_stream_name(self._deployment.prefix, naming.REDRIVE)
