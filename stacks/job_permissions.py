"""What each job of a deployment may do, put together from `constructs.job_access`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdclake import naming
from cdclake.config.deployment import Deployment
from cdclake.metrics import NAMESPACE
from cdclake.stacks.constructs import connect_grants, job_grants
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.glue_network import GlueNetwork
from cdclake.stacks.constructs.grant import Grant, through_s3
from cdclake.stacks.lake_stack import LakeStack
from cdclake.stacks.source_stack import SourceStack
from cdclake.stacks.streaming_stack import StreamingStack


@dataclass(frozen=True, kw_only=True)
class JobRights:
    """The grants of a deployment's jobs."""

    deployment: Deployment
    source: SourceStack
    streaming: StreamingStack
    lake: LakeStack
    job_ground: GlueNetwork
    ground: DeploymentContext

    def of_every_job(self) -> list[Grant]:
        """Its files, the control objects, a place in the network, metrics."""
        state = self.lake.state
        return [
            job_grants.reads_its_files(state),
            job_grants.keeps_objects(
                state, naming.CONTROL_PREFIX, "leases, progress, requests and reports"
            ),
            job_grants.lists(state),
            *job_grants.stands_in_network(
                connection=self.job_ground.connection,
                subnet_ids=[self.job_ground.subnet_id],
                security_group=self.job_ground.security_group,
            ),
            job_grants.publishes_metrics("Glue", NAMESPACE),
            through_s3(self.ground.key_arn),
        ]

    def over_tables(self, *, creates: bool = False) -> list[Grant]:
        """Reading the lake's tables, and committing to them."""
        warehouse, database = self.lake.warehouse, self.deployment.plan.lake_database
        return [
            *self.of_every_job(),
            job_grants.keeps_objects(
                warehouse, f"{database}.db", "the files of the pipeline's database"
            ),
            job_grants.lists(warehouse),
            job_grants.uses_tables(database, creates=creates),
        ]

    def of_stream(self) -> list[Grant]:
        """The same, making tables, and reading topics with a checkpoint."""
        return [
            *self.over_tables(creates=True),
            job_grants.keeps_checkpoints(
                self.lake.state, naming.checkpoint_prefix(self.deployment.plan.name)
            ),
            *job_grants.reads_topics(
                cluster_arn=self.streaming.cluster_arn,
                cluster=self.streaming.cluster_path,
                pipeline=self.deployment.plan.name,
                groups=naming.consumer_group_prefix(self.deployment.prefix),
            ),
        ]

    def of_verify(self) -> list[Grant]:
        """Looking at both sides as the connector's role, and the salt of what is hashed."""
        return self._at_source(self.source.role_secrets)

    def of_operate(self) -> list[Grant]:
        """Looking at both sides, and reading how far the connector is."""
        return [
            *self._at_source([self.source.login.arn]),
            *job_grants.reads_offsets(
                cluster=self.streaming.cluster_path,
                topic=naming.offsets_topic(self.deployment.plan.name),
                groups=naming.consumer_group_prefix(self.deployment.prefix),
            ),
        ]

    def _at_source(self, secret_arns: Sequence[str]) -> list[Grant]:
        """Looking: at tables, at where topics end, at the source."""
        database = self.deployment.plan.lake_database
        return [
            *self.of_every_job(),
            job_grants.reads_objects(
                self.lake.warehouse, f"{database}.db", "the files of the pipeline's database"
            ),
            job_grants.looks_up_tables(database),
            *job_grants.describes_topics(
                cluster_arn=self.streaming.cluster_arn,
                cluster=self.streaming.cluster_path,
                pipeline=self.deployment.plan.name,
            ),
            *connect_grants.reads_secrets(secret_arns, self.ground.key_arn),
        ]
