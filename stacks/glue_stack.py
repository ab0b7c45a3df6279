"""The Glue stack: the jobs' network connection and encryption, and the probe job.

It needs neither source nor Kafka, so that the probe can run before those are paid for.
"""

from __future__ import annotations

from dataclasses import dataclass

from constructs import Construct

from cdclake import naming
from cdclake.config.deployment import Deployment
from cdclake.config.jobs_model import Workers
from cdclake.control_access import CONTROL_ACCESS
from cdclake.deployed_jobs import glue_arguments, package_arguments, probe_arguments
from cdclake.jar_lock import OWN_JARS
from cdclake.job_package import build_job_package, script_of
from cdclake.stacks.bundles import JOB_WHEELS_SUFFIX, build_job_wheels, jar_of
from cdclake.stacks.constructs import job_grants
from cdclake.stacks.constructs.glue_job import GlueJob, JobSpec, log_group_name
from cdclake.stacks.constructs.glue_network import GlueNetwork
from cdclake.stacks.constructs.grant import Grant, arn, on_tables
from cdclake.stacks.constructs.job_files import JobFiles
from cdclake.stacks.lake_stack import LakeOutputs
from cdclake.stacks.network_stack import NetworkOutputs
from cdclake.stacks.pipeline_stack import PipelineStack

_TIMEOUT_MINUTES = 20
_LOGIN_JAR = "aws-msk-iam-auth-*.jar"
_SMALLEST = Workers(worker="G.1X", workers=2, autoscaling=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GlueOutputs:
    """Network and encryption of the deployment's Glue jobs."""

    network: GlueNetwork


class GlueStack(PipelineStack):
    """Connection and security configuration of all jobs, and a job that checks them."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        network: NetworkOutputs,
        lake: LakeOutputs,
    ) -> None:
        super().__init__(scope, deployment, "glue", "network of the Glue jobs, and their probe")
        self._lake, self._context = lake, network.context
        self._files = JobFiles(self, "ProbeFiles", bucket=lake.state, context=network.context)
        self._network = GlueNetwork(
            self, "Network", security_group=network.jobs.group_id, context=network.context
        )
        spec = self._probe()
        self._network.node.add_dependency(self._files.publish())
        GlueJob(
            self,
            "Probe",
            spec,
            connection=self._network.connection,
            security_configuration=self._network.security_configuration,
            after=self._network,
            context=network.context,
        )
        self.outputs = GlueOutputs(network=self._network)

    def _probe(self) -> JobSpec:
        """Specify the job with the jars, wheels and settings that the other jobs have."""
        job, plan = naming.PROBE_JOB, self.deployment.plan
        group = log_group_name(self.deployment.prefix, job)
        arguments = {
            **probe_arguments(
                state=self._lake.state.name, pipeline=plan.name, database=plan.lake_database
            ),
            **glue_arguments(
                job,
                self._lake.warehouse.name,
                package=self._files.add(build_job_package(), "cdclake-jobs"),
                log_group=group,
            ),
            "--extra-jars": ",".join(
                self._files.add(path)
                for path in (jar_of("spark", OWN_JARS["spark"]), jar_of("msk", _LOGIN_JAR))
            ),
            **package_arguments(self._files.add(build_job_wheels(), "cdclake", JOB_WHEELS_SUFFIX)),
        }
        return JobSpec(
            job=job,
            purpose="Checks that the jobs can run here: classes, packages, S3, catalog, checkpoint",
            streaming=True,  # as the jobs at Kafka, which need its client on their class path
            script=self._files.add(script_of(job)),
            arguments=arguments,
            size=_SMALLEST,
            timeout_minutes=_TIMEOUT_MINUTES,
            grants=self._grants(),
        )

    def _grants(self) -> list[Grant]:
        """Allow what the checks do, on names that only the probe gives; not what other jobs may."""
        state, warehouse, plan = self._lake.state, self._lake.warehouse, self.deployment.plan
        made = "the names are random, with a start that only the probe's have"
        tables = f"{naming.PROBE_TABLE}*"
        checkpoints = f"{naming.checkpoint_prefix(plan.name)}/{naming.PROBE_JOB}-*"
        return [
            *job_grants.runs_as_job(
                state,
                CONTROL_ACCESS[naming.PROBE_JOB],
                network=self._network,
                key_arn=self._context.key_arn,
            ),
            job_grants.keeps_objects(warehouse, f"{plan.lake_database}.db/{tables}", because=made),
            job_grants.lists(warehouse),
            *job_grants.keeps_files_by_s3a(state, checkpoints, made),
            on_tables(
                *("glue:CreateTable", "glue:DeleteTable", "glue:GetDatabase"),
                *("glue:GetTable", "glue:UpdateTable"),
                database=plan.lake_database,
                because=made,
                tables=(tables,),
            ),
            self._finds_its_logs(),
        ]

    def _finds_its_logs(self) -> Grant:
        """Allow logging to groups that Glue may derive from role and security configuration.

        Only a log in one of them shows that it does. Source: Glue's API reference, `LogGroupName`
        of `JobRun`, and the names of older versions of Glue.
        """
        prefix, security = self._context.prefix, self._network.security_configuration
        names = (
            f"{log_group_name(prefix, naming.PROBE_JOB)}*",
            f"/aws-glue/jobs-*{security}*",
            f"/aws-glue/jobs/{security}-role/*",
        )
        return Grant(
            actions=[
                *("logs:AssociateKmsKey", "logs:CreateLogGroup"),
                *("logs:CreateLogStream", "logs:PutLogEvents"),
            ],
            on=[arn("logs", f"log-group:{name}") for name in names],
            because="the probe finds out which log groups Glue chooses for this deployment's jobs",
        )
