"""Resource that waits for tables, which jobs create after their deployment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from constructs import Construct

from cdclake import naming
from cdclake.config.deployment import Deployment
from cdclake.plan import Table
from cdclake.stacks.constructs.content_hash import content_hash
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
    context: DeploymentContext,
    polled: Sequence[Table] = (),
    columns: Mapping[str, Sequence[str]] | None = None,
) -> CdclakeResource:
    """Return a resource that exists when the catalog has the tables `wanted` and their columns.

    `wanted` are properties of `Custom::CdclakeTables`; those of `polled` are created by polls. The
    resource starts polls and a stream that otherwise only their schedules start, maybe later than
    the resource may wait. `columns` are packed with the function: an update sends the old and the
    new properties in one event, whose size Lambda limits. Their digest is a property instead.
    """
    by_poll = {name: table.name for table in polled for name in (table.changes, table.name)}
    is_streamed = any(name not in by_poll for name in wanted["Tables"])
    jobs: dict[str, str] = {}
    if is_streamed and deployment.plan.mode == "scheduled" and deployment.aws.stream == "on":
        jobs["Job"] = naming.glue_job_name(deployment.prefix, naming.STREAM_JOB)
    if by_poll:
        jobs["PollJob"] = naming.glue_job_name(deployment.prefix, naming.POLL_JOB)
        wanted = {**wanted, "Polled": by_poll}
    if columns is not None:
        wanted = {**wanted, "ColumnsDigest": content_hash(scope, columns)}
    on = [arn("glue", f"job/{job}") for job in jobs.values()]
    started = [Grant(actions=["glue:StartJobRun"], on=on)] if on else []
    return CdclakeResource(
        scope,
        construct_id,
        what="Tables",
        properties={**wanted, **jobs},
        grants=[looks_up, *started],
        context=context,
        timeout_s=_MAX_TIMEOUT_S,
        files={} if columns is None else {"columns.json": json.dumps(columns).encode()},
    )
