"""One Glue job with its role, log groups and arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Aws, aws_glue
from constructs import Construct, IDependable

from cdclake import naming
from cdclake.config.jobs_model import Workers
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant
from cdclake.stacks.constructs.job_grants import encrypts_its_logs
from cdclake.stacks.constructs.log_group import LogGroup
from cdclake.stacks.constructs.service_role import ServiceRole

_VERSION = "5.1"
_Job = aws_glue.CfnJob


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """Specification of a job, without its network and encryption."""

    job: str
    purpose: str
    streaming: bool
    script: str
    arguments: Mapping[str, str]
    size: Workers
    timeout_minutes: int
    grants: Sequence[Grant]
    concurrent_runs: int = 1


class GlueJob(Construct):
    """Job of Glue 5.1 in the deployment's network, under its security configuration."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        spec: JobSpec,
        *,
        connection: str,
        security_configuration: str,
        after: IDependable,
        context: DeploymentContext,
    ) -> None:
        super().__init__(scope, construct_id)
        self.name = naming.glue_job_name(context.prefix, spec.job)
        self.arguments = spec.arguments
        logs = self._add_logs(spec.job, context)
        self.resource = _Job(
            self,
            "Job",
            name=self.name,
            description=spec.purpose,
            role=self._add_role(spec, logs, context).arn,
            glue_version=_VERSION,
            command=_command(spec),
            default_arguments={**spec.arguments, **_scaling(spec.size)},
            connections=_Job.ConnectionsListProperty(connections=[connection]),
            security_configuration=security_configuration,
            worker_type=spec.size.worker,
            number_of_workers=spec.size.workers,
            timeout=spec.timeout_minutes,
            # The tables reject a second writer. The keeper or the schedule retries.
            execution_property=_Job.ExecutionPropertyProperty(
                max_concurrent_runs=spec.concurrent_runs
            ),
            max_retries=0,
        )
        self.resource.node.add_dependency(after, *logs)

    def _add_logs(self, job: str, context: DeploymentContext) -> list[LogGroup]:
        """Add the log groups: Glue would create them without retention."""
        name = log_group_name(context.prefix, job)
        return [
            LogGroup(self, kind.capitalize(), context=context, name=f"{name}/{kind}")
            for kind in ("output", "error")
        ]

    def _add_role(
        self, spec: JobSpec, logs: Sequence[LogGroup], context: DeploymentContext
    ) -> ServiceRole:
        return ServiceRole(
            self,
            "Role",
            service="glue",
            for_arn=f"glue:{Aws.REGION}:{Aws.ACCOUNT_ID}:*",
            statements=[
                *spec.grants,
                *(log.written_to() for log in logs),
                encrypts_its_logs(log_group_name(context.prefix, spec.job)),
            ],
        )


def log_group_name(prefix: str, job: str) -> str:
    """Return the prefix of the job's two log groups."""
    return f"/aws-glue/jobs/{prefix}/{job}"


def _command(spec: JobSpec) -> aws_glue.CfnJob.JobCommandProperty:
    return _Job.JobCommandProperty(
        name="gluestreaming" if spec.streaming else "glueetl",
        python_version="3",
        script_location=spec.script,
    )


def _scaling(size: Workers) -> dict[str, str]:
    return {"--enable-auto-scaling": "true"} if size.autoscaling else {}
