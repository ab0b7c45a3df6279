"""The processing stack: the Glue jobs, what starts them, and what keeps the stream running."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from constructs import Construct

from cdclake import naming
from cdclake.config.aws_model import CreatedKafka, ExistingKafka
from cdclake.config.deployment import Deployment
from cdclake.deployed_jobs import (
    AT_SOURCE,
    TABLE_JOBS,
    Places,
    glue_arguments,
    own_arguments,
    package_arguments,
    source_words,
)
from cdclake.errors import InputError
from cdclake.job_package import build_job_package, script_of
from cdclake.stacks.bundles import AUTHORITIES, JOB_WHEELS_SUFFIX, build_job_wheels
from cdclake.stacks.constructs.custom_resource import CdclakeResource
from cdclake.stacks.constructs.glue_job import GlueJob, JobSpec, log_group_name
from cdclake.stacks.constructs.glue_network import GlueNetwork
from cdclake.stacks.constructs.grant import Grant
from cdclake.stacks.constructs.job_files import JobFiles
from cdclake.stacks.constructs.job_schedule import JobSchedules
from cdclake.stacks.constructs.stream_keeper import StreamKeeper
from cdclake.stacks.job_permissions import JobRights
from cdclake.stacks.lake_stack import LakeStack
from cdclake.stacks.network_stack import NetworkStack
from cdclake.stacks.pipeline_stack import PipelineStack
from cdclake.stacks.source_stack import SourceStack
from cdclake.stacks.streaming_stack import StreamingStack

_MSK_JARS = Path(__file__).resolve().parents[1] / "jars" / "msk"
# Glue ends a stream after seven days at the latest; the keeper starts the next one.
_STREAM_TIMEOUT_MINUTES = 7 * 24 * 60 - 60
_PURPOSES = {
    naming.STREAM_JOB: "Appends events to the changelogs and applies them to the state tables",
    naming.APPLY_JOB: "Applies new changes from the changelogs to the state tables",
    naming.MAINTAIN_JOB: "Compacts tables, expires snapshots, purges tombstones, collapses history",
    naming.REBUILD_JOB: "Rebuilds state tables from their changelogs",
    naming.VERIFY_JOB: "Compares every row of the source with the lake",
    naming.OPERATE_JOB: "Replays quarantined events, resumes stopped tables or resyncs tables",
}


class ProcessingStack(PipelineStack):
    """Jobs over the same code as locally, with the arguments of `cdclake.deployed_jobs`."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        network: NetworkStack,
        source: SourceStack,
        streaming: StreamingStack,
        lake: LakeStack,
    ) -> None:
        super().__init__(scope, deployment, "processing", "Glue jobs, schedules and stream keeper")
        self.add_stack_dependency(lake)
        self._ground, self._source = network.ground, source
        self._streaming, self._lake = streaming, lake
        self._files = JobFiles(self, "Files", bucket=lake.state, ground=network.ground)
        self._job_ground = GlueNetwork(
            self, "JobGround", security_group=network.jobs.group_id, ground=network.ground
        )
        self._rights = JobRights(
            deployment=deployment,
            source=source,
            streaming=streaming,
            lake=lake,
            job_ground=self._job_ground,
            ground=network.ground,
        )
        specs = self._specs()
        published = self._files.publish()
        self._job_ground.node.add_dependency(published)
        jobs = {spec.job: self._add_job(spec) for spec in specs}
        self._start(jobs)

    def _specs(self) -> list[JobSpec]:
        self._package = self._files.add(build_job_package(), "cdclake-jobs")
        self._jar = self._files.add(_iam_jar())
        self._wheels = self._files.add(build_job_wheels(), "cdclake", JOB_WHEELS_SUFFIX)
        plan = self._files.add_text("plan.json", self.deployment.plan.to_json())
        self._places = Places(
            prefix=self.deployment.prefix,
            pipeline=self.deployment.plan.name,
            state=self._lake.state.name,
            warehouse=self._lake.warehouse.name,
            plan=plan,
            brokers=self._brokers(),
            source=source_words(
                self._source.endpoint, self._source.port, self.deployment.plan.source_database
            ),
            login=self._source.login.name,
            salt=self._source.salt.name if self.deployment.plan.is_salted else None,
            authorities=self._files.add(AUTHORITIES),
        )
        return [
            *(self._batch_job(job, self._rights.over_tables()) for job in TABLE_JOBS),
            self._batch_job(naming.VERIFY_JOB, self._rights.of_verify()),
            self._batch_job(naming.OPERATE_JOB, self._rights.of_operate()),
            self._stream(),
        ]

    def _brokers(self) -> str:
        """Asked here, where alone they are needed, and again when there are more of them.

        CloudFormation changes no value that another stack imports.
        """
        match self.deployment.aws.kafka.declared:
            case ExistingKafka() as existing:
                return existing.bootstrap_brokers
            case CreatedKafka() as sizes:
                arn = self._streaming.cluster_arn
                found = CdclakeResource(
                    self,
                    "Bootstrap",
                    what="Brokers",
                    properties={"ClusterArn": arn, "PerZone": str(sizes.brokers_per_zone)},
                    grants=[Grant(actions=["kafka:GetBootstrapBrokers"], on=[arn])],
                    ground=self._ground,
                )
                return found.resource.get_att_string("Brokers")

    def _batch_job(self, job: str, grants: list[Grant]) -> JobSpec:
        size = self.deployment.aws.jobs.batch
        arguments = self._arguments(job)
        if job in AT_SOURCE:
            arguments |= {"--extra-jars": self._jar, **package_arguments(self._wheels)}
        return JobSpec(
            job=job,
            purpose=_PURPOSES[job],
            streaming=False,
            script=self._files.add(script_of(job)),
            arguments=arguments,
            size=size,
            timeout_minutes=size.timeout_minutes,
            grants=grants,
        )

    def _stream(self) -> JobSpec:
        """In the scheduled mode nobody ends it: it ends by itself."""
        job = naming.STREAM_JOB
        script = self._files.add(script_of(job))
        arguments = self._arguments(job) | {"--extra-jars": self._jar}
        if self._is_kept:
            arguments["--deployment"] = self._deployment_id()
        return JobSpec(
            job=job,
            purpose=_PURPOSES[job],
            streaming=True,
            script=script,
            arguments=arguments,
            size=self.deployment.aws.jobs.stream,
            timeout_minutes=_STREAM_TIMEOUT_MINUTES,
            grants=self._rights.of_stream(),
        )

    @property
    def _is_kept(self) -> bool:
        return self.deployment.plan.mode == "always_on"

    def _arguments(self, job: str) -> dict[str, str]:
        own = own_arguments(job, self._places)
        group = log_group_name(self.deployment.prefix, job)
        return own | glue_arguments(job, self._places, package=self._package, log_group=group)

    def _deployment_id(self) -> str:
        """Another one wherever the stream has to start anew: code, plan, sizes."""
        sizes = self.deployment.aws.jobs.stream.model_dump()
        told = json.dumps([self._files.hashes, sizes], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def _add_job(self, spec: JobSpec) -> GlueJob:
        construct_id = "".join(word.capitalize() for word in spec.job.split("_"))
        return GlueJob(
            self,
            construct_id,
            spec,
            connection=self._job_ground.connection,
            security_configuration=self._job_ground.security_configuration,
            after=self._job_ground,
            ground=self._ground,
        )

    def _start(self, jobs: dict[str, GlueJob]) -> None:
        """What the pipeline file says about when each job runs."""
        plan, stream = self.deployment.plan, jobs[naming.STREAM_JOB]
        schedules = JobSchedules(self, "Schedules", ground=self._ground)
        self.failed_queue = schedules.failed_queue
        schedules.start_job(
            "Maintain", schedule=plan.schedules["maintain"], job=jobs[naming.MAINTAIN_JOB].name
        )
        if any(table.apply == "scheduled" for table in plan.tables):
            schedules.start_job(
                "Apply", schedule=plan.schedules["apply"], job=jobs[naming.APPLY_JOB].name
            )
        wanted = self.deployment.aws.stream == "on"
        if self._is_kept:
            StreamKeeper(
                self,
                "StreamKeeper",
                job=stream,
                deployment_id=self._deployment_id() if wanted else None,
                state=self._lake.state,
                schedules=schedules,
                ground=self._ground,
            )
        elif wanted:
            schedules.start_job("Stream", schedule=plan.schedules["apply"], job=stream.name)


def _iam_jar() -> Path:
    found = list(_MSK_JARS.glob("aws-msk-iam-auth-*.jar"))
    if len(found) != 1:
        raise InputError(f"no aws-msk-iam-auth jar in {_MSK_JARS}", "run `make setup`")
    return found[0]
