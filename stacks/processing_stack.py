"""The processing stack: the Glue jobs, their grants and schedules, and the stream keeper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from constructs import Construct

from cdclake import naming
from cdclake.config.deployment import Deployment
from cdclake.config.kafka_model import CreatedKafka, ExistingKafka
from cdclake.control_access import CONTROL_ACCESS
from cdclake.deployed_jobs import (
    AT_KAFKA,
    OF_DELIVERED,
    TABLE_JOBS,
    JobLocations,
    glue_arguments,
    has_work,
    own_arguments,
    package_arguments,
    source_words,
)
from cdclake.forget.refused_plans import is_erasable
from cdclake.jar_lock import OWN_JARS
from cdclake.job_package import build_job_package, script_of
from cdclake.stacks.bundles import (
    AUTHORITIES,
    JOB_WHEELS_SUFFIX,
    build_job_wheels,
    build_preparation,
    jar_of,
)
from cdclake.stacks.constructs import job_grants
from cdclake.stacks.constructs.connector_keeper import ConnectorKeeper
from cdclake.stacks.constructs.content_hash import content_hash
from cdclake.stacks.constructs.custom_resource import CdclakeResource
from cdclake.stacks.constructs.glue_job import GlueJob, JobSpec, log_group_name
from cdclake.stacks.constructs.grant import Grant
from cdclake.stacks.constructs.job_files import JobFiles
from cdclake.stacks.constructs.job_schedule import JobSchedules
from cdclake.stacks.constructs.nag_suppressions import suppress
from cdclake.stacks.constructs.source_check import SourceCheck
from cdclake.stacks.constructs.stream_keeper import StreamKeeper
from cdclake.stacks.glue_stack import GlueOutputs
from cdclake.stacks.job_purposes import PURPOSES
from cdclake.stacks.lake_stack import LakeOutputs
from cdclake.stacks.network_stack import NetworkOutputs
from cdclake.stacks.pipeline_stack import PipelineStack
from cdclake.stacks.source_stack import SourceOutputs
from cdclake.stacks.streaming_stack import StreamingOutputs
from cdclake.stacks.table_schedules import schedule_table_jobs
from cdclake.stacks.verify_grants import verify_grants

# Glue ends a streaming job after at most seven days; the keeper starts the next run.
_STREAM_TIMEOUT_MINUTES = 7 * 24 * 60 - 60
_CREATING = (naming.REBUILD_JOB, naming.REFRESH_JOB)  # a state that is gone, derived tables


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessingOutputs:
    """Dead-letter queue of the schedules."""

    failed_queue: str  # name


class ProcessingStack(PipelineStack):
    """Glue jobs that run the local lake's code with the arguments of `cdclake.deployed_jobs`."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        network: NetworkOutputs,
        source: SourceOutputs,
        streaming: StreamingOutputs,
        lake: LakeOutputs,
        glue: GlueOutputs,
    ) -> None:
        super().__init__(scope, deployment, "processing", "Glue jobs, schedules and stream keeper")
        self._context, self._source = network.context, source
        self._streaming, self._lake, self._glue = streaming, lake, glue
        self._functions = network.functions.group_id
        self._files = JobFiles(self, "Files", bucket=lake.state, context=network.context)
        self._add_shared_files()
        # The stream is last: its id covers the files that were added before.
        specs = [*self._batch_jobs(), self._stream()]
        self._published = self._files.publish()
        jobs = {spec.job: self._add_job(spec) for spec in specs}
        self.outputs = ProcessingOutputs(failed_queue=self._start(jobs))

    def _add_shared_files(self) -> None:
        """Add the files that every job's arguments name."""
        self._package = self._files.add(build_job_package(), "cdclake-jobs")
        # Before all others: every job reads and writes tables through its class.
        self._file_access = self._files.add(jar_of("spark", OWN_JARS["spark"]))
        self._login_jar = self._files.add(jar_of("msk", "aws-msk-iam-auth-*.jar"))
        self._wheels = self._files.add(build_job_wheels(), "cdclake", JOB_WHEELS_SUFFIX)
        plan = self._files.add_text("plan.json", self.deployment.plan.to_json())
        self._locations = JobLocations(
            prefix=self.deployment.prefix,
            pipeline=self.deployment.plan.name,
            state=self._lake.state.name,
            warehouse=self._lake.warehouse.name,
            plan=plan,
            brokers=self._brokers(),
            source=source_words(
                self._source.endpoint, self._source.port, self.deployment.plan.source_database
            ),
            login=self._source.login_name,
            salt=self._source.salt_name,
            is_masked=self._source.is_masked,
            is_delivered=bool(self.deployment.plan.deliveries),
            authorities=self._files.add(AUTHORITIES),
            epoch=self.deployment.aws.connect.epoch,
            runs=self._runs_of_verify,
        )

    def _batch_jobs(self) -> list[JobSpec]:
        """Specify all jobs but the stream."""
        return [
            *(self._batch_job(job, self._table_grants(job)) for job in self._table_jobs),
            self._batch_job(naming.VERIFY_JOB, self._verify_grants()),
            self._batch_job(naming.OPERATE_JOB, self._operate_grants()),
            *self._forget(),
            *self._load(),
        ]

    def _table_grants(self, job: str) -> list[Grant]:
        """Allow committing to the lake's tables, or what less a job does with them."""
        if job == naming.CHECK_JOB:
            return self._lake.grant_read_tables()
        if job == naming.POLL_JOB:
            source = self._source.grant_erase_rows()
            return [*self._lake.grant_commit_tables(creates=True), *source]
        if job == naming.PUBLISH_JOB:
            return self._lake.grant_publish_copies()
        commits = self._lake.grant_commit_tables(creates=job in _CREATING)
        if job in OF_DELIVERED and self.deployment.plan.deliveries:
            return [*commits, *self._source.grant_read_salt()]
        return commits

    def _brokers(self) -> str:
        """Return the brokers' addresses, looked up again when the cluster grows.

        The lookup is in this stack since CloudFormation cannot change a value that another stack
        imports.
        """
        match self.deployment.aws.kafka.declared:
            case ExistingKafka() as existing:
                return existing.bootstrap_brokers
            case CreatedKafka() as sizes:
                found = CdclakeResource(
                    self,
                    "Bootstrap",
                    what="Brokers",
                    properties={
                        "ClusterArn": self._streaming.cluster_arn,
                        "PerZone": str(sizes.brokers_per_zone),
                    },
                    grants=self._streaming.grant_find_brokers(),
                    context=self._context,
                )
                return found.resource.get_att_string("Brokers")

    def _load(self) -> list[JobSpec]:
        """Specify the bulk load if the file has one; it needs the connector's JDBC driver."""
        if self.deployment.plan.snapshot_mode != "bulk":
            return []
        driver = self._files.add(jar_of("debezium", "postgresql-*.jar"))
        certificates = self._files.add(jar_of("secrets", OWN_JARS["secrets"]))
        offsets = naming.offsets_topic(self.deployment.plan.name)
        grants = [
            *self._lake.grant_commit_tables(creates=True),
            *self._streaming.grant_set_offsets(offsets, self._consumer_groups),
            *self._source.grant_read_login_and_salt(),
        ]
        return [self._batch_job(naming.LOAD_JOB, grants, driver, certificates)]

    def _forget(self) -> list[JobSpec]:
        """Specify the erasure of rows, if those of a table can be erased."""
        plan, topic = self.deployment.plan, self.deployment.plan.heartbeat_rows_topic
        if not any(is_erasable(plan, table) for table in plan.all_tables):
            return []
        asked = [
            *([naming.APPLY_JOB] if plan.deliveries else []),
            *([naming.POLL_JOB] if plan.polled else []),
            *([naming.PUBLISH_JOB] if plan.copies else []),
        ]
        grants = [
            *self._lake.grant_erase_objects(),
            *self._lake.grant_erase_failed({each.error_prefix for each in plan.deliveries}),
            *self._source.grant_erase_rows(),
            *self._streaming.grant_read_markers(topic, self._consumer_groups),
            *job_grants.runs_jobs(naming.glue_job_name(self.deployment.prefix, j) for j in asked),
        ]
        return [self._batch_job(naming.FORGET_JOB, grants)]

    def _batch_job(self, job: str, grants: Sequence[Grant], *others: str) -> JobSpec:
        size = self.deployment.aws.jobs.batch
        arguments = self._arguments(job)
        if job in AT_KAFKA:
            arguments |= self._jars(self._login_jar, *others)
        return JobSpec(
            job=job,
            purpose=PURPOSES[job],
            # Only streaming jobs are documented to have a Kafka client on their class path.
            streaming=job in AT_KAFKA,
            script=self._files.add(script_of(job)),
            arguments=arguments,
            size=size,
            timeout_minutes=size.timeout_minutes,
            concurrent_runs=self._concurrent_runs(job),
            grants=[*self._every_job_grants(job), *grants],
        )

    def _concurrent_runs(self, job: str) -> int:
        """Return one run for each derived table, copy or schedule of polls.

        The lease of a table keeps other runs away. A comparison polls next to the schedules.
        """
        plan = self.deployment.plan
        of = {
            naming.REFRESH_JOB: len(plan.derived),
            naming.PUBLISH_JOB: len(plan.copies),
            naming.POLL_JOB: len(plan.polls) + 1,
        }
        return of.get(job, 1)

    def _stream(self) -> JobSpec:
        """Specify the stream; in the scheduled mode each run ends by itself."""
        job = naming.STREAM_JOB
        script = self._files.add(script_of(job))
        arguments = self._arguments(job) | self._jars(self._login_jar)
        if self.deployment.aws.monitoring.table_metrics:
            arguments["--table_metrics"] = "true"
        if self._is_kept:
            arguments["--deployment"] = self._deployment_id(arguments)
        return JobSpec(
            job=job,
            purpose=PURPOSES[job],
            streaming=True,
            script=script,
            arguments=arguments,
            size=self.deployment.aws.jobs.stream,
            timeout_minutes=_STREAM_TIMEOUT_MINUTES,
            grants=[*self._every_job_grants(job), *self._stream_grants()],
        )

    def _every_job_grants(self, job: str) -> list[Grant]:
        """Allow reading the job's files, using control objects, network access and metrics."""
        return job_grants.runs_as_job(
            self._lake.state,
            CONTROL_ACCESS[job],
            network=self._glue.network,
            key_arn=self._context.key_arn,
        )

    def _stream_grants(self) -> list[Grant]:
        """Allow creating tables, committing to them, and reading topics with a checkpoint."""
        checkpoints = naming.checkpoint_prefix(self.deployment.plan.name)
        return [
            *self._lake.grant_commit_tables(creates=True),
            *job_grants.keeps_checkpoints(self._lake.state, checkpoints),
            *self._streaming.grant_read_topics(self._consumer_groups),
            *self._streaming.grant_read_schemas(),
            *self._source.grant_read_salt(),
        ]

    def _verify_grants(self) -> list[Grant]:
        prefix = self.deployment.prefix
        return verify_grants(
            self.deployment.plan,
            lake=self._lake,
            streaming=self._streaming,
            source=self._source,
            runs=[naming.glue_job_name(prefix, job) for job in self._locations.runs],
            groups=self._consumer_groups,
        )

    @property
    def _runs_of_verify(self) -> tuple[str, ...]:
        """Return the jobs that read what only their schedules would read before a comparison."""
        plan = self.deployment.plan
        is_scheduled = not self._is_kept and self.deployment.aws.stream == "on"
        reads_topics = any(table.delivery == "stream" for table in plan.tables)
        return (
            *([naming.POLL_JOB] if plan.polled else []),
            *([naming.STREAM_JOB] if is_scheduled and reads_topics else []),
        )

    def _operate_grants(self) -> list[Grant]:
        """Allow reading the lake, the topics' offsets, the source and the connector's offsets."""
        offsets = naming.offsets_topic(self.deployment.plan.name)
        return [
            *self._lake.grant_read_tables(),
            *self._streaming.grant_describe_topics(),
            *self._source.grant_read_login(),
            *self._streaming.grant_read_offsets(offsets, self._consumer_groups),
        ]

    @property
    def _consumer_groups(self) -> str:
        return naming.consumer_group_prefix(self.deployment.prefix)

    @property
    def _table_jobs(self) -> list[str]:
        """Return the jobs over tables that the pipeline has work for."""
        return [job for job in TABLE_JOBS if has_work(job, self.deployment.plan)]

    @property
    def _is_kept(self) -> bool:
        return self.deployment.plan.mode == "always_on"

    def _arguments(self, job: str) -> dict[str, str]:
        own = own_arguments(job, self._locations)
        group = log_group_name(self.deployment.prefix, job)
        whole = own | glue_arguments(
            job, self._lake.warehouse.name, package=self._package, log_group=group
        )
        return whole | self._jars() | package_arguments(self._wheels)

    def _jars(self, *others: str) -> dict[str, str]:
        return {"--extra-jars": ",".join((self._file_access, *others))}

    def _deployment_id(self, arguments: Mapping[str, str]) -> str:
        """Return an id that changes with the files added so far, the stream's size and arguments.

        The keeper restarts the stream when the id changes.
        """
        sizes = self.deployment.aws.jobs.stream.model_dump()
        return content_hash(self, [self._files.hashes, sizes, arguments])

    def _add_job(self, spec: JobSpec) -> GlueJob:
        construct_id = "".join(word.capitalize() for word in spec.job.split("_"))
        job = GlueJob(
            self,
            construct_id,
            spec,
            connection=self._glue.network.connection,
            security_configuration=self._glue.network.security_configuration,
            after=self._published,
            context=self._context,
        )
        suppress(
            job.resource, "GL1", "the security configuration, which encrypts logs, is in `glue`"
        )
        suppress(job.resource, "GL3", "the security configuration, which has the key, is in `glue`")
        return job

    def _start(self, jobs: dict[str, GlueJob]) -> str:
        """Schedule the jobs as the pipeline file declares; return the dead-letter queue's name."""
        plan, stream = self.deployment.plan, jobs[naming.STREAM_JOB]
        schedules = JobSchedules(self, "Schedules", context=self._context)
        schedule_table_jobs(plan, schedules, {job: made.name for job, made in jobs.items()})
        wanted = self.deployment.aws.stream == "on"
        is_scheduled = wanted and not self._is_kept
        # Deployed in the scheduled mode too: it ends the run that an always-on deployment left.
        StreamKeeper(
            self,
            "StreamKeeper",
            job=stream,
            deployment_id=stream.arguments.get("--deployment") if wanted else None,
            is_scheduled=is_scheduled,
            state=self._lake.state,
            schedules=schedules,
            context=self._context,
        )
        if is_scheduled:
            schedules.start_job("Stream", schedule=plan.schedules["apply"], job=stream.name)
        self._check_source(schedules)
        if self.deployment.aws.connector == "on":
            prefix = self._context.prefix
            sinks = [naming.declared_connector_name(prefix, c.name) for c in self.deployment.sinks]
            ConnectorKeeper(
                self, "ConnectorKeeper", sinks=sinks, schedules=schedules, context=self._context
            )
        return schedules.failed_queue

    def _check_source(self, schedules: JobSchedules) -> None:
        SourceCheck(
            self,
            "SourceCheck",
            file=build_preparation(self.deployment.plan).path,
            environment={
                "HOST": self._source.endpoint,
                "PORT": str(self._source.port),
                "DATABASE": self.deployment.plan.source_database,
                "LOGIN_SECRET": self._source.login_name,
            },
            grants=self._source.grant_read_login(),
            security_group=self._functions,
            state=self._lake.state,
            schedules=schedules,
            context=self._context,
        )
