"""The query stack: the Athena workgroup, and the bucket of its results."""

from __future__ import annotations

from constructs import Construct

from cdclake.config.deployment import RESULT_RESTORABLE_DAYS, Deployment
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.lake_bucket import LakeBucket
from cdclake.stacks.constructs.workgroup import Workgroup
from cdclake.stacks.pipeline_stack import PipelineStack


class QueryStack(PipelineStack):
    """Workgroup and result bucket. It grants no access to the lake: the account's owner does."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        access_log: str,
        context: DeploymentContext,
    ) -> None:
        super().__init__(scope, deployment, "query", "Athena workgroup and query results")
        limits = deployment.aws.query
        results = LakeBucket(
            self,
            "Results",
            access_log=access_log,
            restorable_days=RESULT_RESTORABLE_DAYS,
            days=limits.result_days,
            context=context,
        )
        Workgroup(self, "Queries", bucket=results.name, scan_gb=limits.scan_gb, context=context)
