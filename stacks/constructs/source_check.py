"""Scheduled check of the source's relations and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from constructs import Construct

from cdclake import naming
from cdclake.control_objects import NEW_COLUMNS, REQUESTS, RESUMES, WIDENED
from cdclake.metrics import NAMESPACE
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.function import LambdaFunction
from cdclake.stacks.constructs.grant import Grant
from cdclake.stacks.constructs.job_grants import publishes_metrics
from cdclake.stacks.constructs.job_schedule import JobSchedules
from cdclake.stacks.constructs.lake_bucket import BucketReference
from cdclake.stacks.constructs.relation_records import keeps_records

# Twice within the alarm's period of an hour, so that no period lacks data.
_EVERY = "rate(30 minutes)"
_TIMEOUT_S = 120
# Control objects that the check writes: its findings, and requests to replay or resume tables.
_OBJECTS = (WIDENED, NEW_COLUMNS, f"{REQUESTS}/*", f"{RESUMES}/*")


class SourceCheck(LambdaFunction):
    """Scheduled function that compares the source with what the lake recorded of it.

    It is `check` of `lambda/prepare_source`, and has the connector's login.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        file: Path,
        environment: Mapping[str, str],
        grants: Sequence[Grant],
        security_group: str,
        state: BucketReference,
        schedules: JobSchedules,
        context: DeploymentContext,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            module="prepare_source",
            handler="check",
            code=file,
            environment={
                **environment,
                "BUCKET": state.name,
                "DIMENSION": context.prefix,
            },
            grants=[
                *grants,
                *keeps_records(state, context.key_arn),
                _control_objects(state),
                publishes_metrics(NAMESPACE),
            ],
            timeout_s=_TIMEOUT_S,
            security_group=security_group,
            context=context,
        )
        schedules.call("SourceCheck", schedule=_EVERY, function_arn=self.arn)


def _control_objects(state: BucketReference) -> Grant:
    return Grant(
        actions=["s3:GetObject", "s3:PutObject"],
        on=[f"{state.arn}/{naming.CONTROL_PREFIX}/{name}" for name in _OBJECTS],
        because="a request to the stream is an object with the name of its table",
    )
