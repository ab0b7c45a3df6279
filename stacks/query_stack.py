"""The query stack: the workgroup in Athena, and the bucket of its results."""

from __future__ import annotations

from constructs import Construct

from cdclake.config.deployment import Deployment
from cdclake.stacks.constructs.lake_bucket import LakeBucket
from cdclake.stacks.constructs.workgroup import Workgroup
from cdclake.stacks.lake_stack import LakeStack
from cdclake.stacks.network_stack import NetworkStack
from cdclake.stacks.pipeline_stack import PipelineStack

# A result can be had again by its query.
_RESTORABLE_DAYS = 1


class QueryStack(PipelineStack):
    """Who may query is not said here: reading the lake is for the account's owner to allow."""

    def __init__(
        self, scope: Construct, deployment: Deployment, *, network: NetworkStack, lake: LakeStack
    ) -> None:
        super().__init__(scope, deployment, "query", "Athena workgroup and query results")
        limits = deployment.aws.query
        results = LakeBucket(
            self,
            "Results",
            access_log=lake.access_log,
            restorable_days=_RESTORABLE_DAYS,
            days=limits.result_days,
            ground=network.ground,
        )
        Workgroup(
            self, "Queries", bucket=results.name, scan_gb=limits.scan_gb, ground=network.ground
        )
