"""Resource that waits for tables, which the stream creates after its deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from constructs import Construct

from cdclake import naming
from cdclake.config.deployment import Deployment
from cdclake.stacks.constructs.custom_resource import CdclakeResource
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant, arn

_MAX_TIMEOUT_S = 900


def await_tables(
    scope: Construct,
    construct_id: str,
    deployment: Deployment,
    *,
    wanted: Mapping[str, Any],
    looks_up: Grant,
    ground: DeploymentContext,
) -> CdclakeResource:
    """Return a resource that exists when the catalog has the tables and columns `wanted`.

    `wanted` are properties of `Custom::CdclakeTables`. The resource starts a stream that otherwise
    only its schedule starts, maybe later than the resource may wait.
    """
    started: Sequence[Grant] = ()
    if deployment.plan.mode == "scheduled" and deployment.aws.stream == "on":
        job = naming.glue_job_name(deployment.prefix, naming.STREAM_JOB)
        wanted = {**wanted, "Job": job}
        started = [Grant(actions=["glue:StartJobRun"], on=[arn("glue", f"job/{job}")])]
    return CdclakeResource(
        scope,
        construct_id,
        what="Tables",
        properties=wanted,
        grants=[looks_up, *started],
        ground=ground,
        timeout_s=_MAX_TIMEOUT_S,
    )
