"""The stream keeper: a function invoked by the job's events and on a schedule."""

from __future__ import annotations

from aws_cdk import Aws, aws_events, aws_lambda
from constructs import Construct

from cdclake import naming
from cdclake.control_objects import PAUSE
from cdclake.metrics import NAMESPACE
from cdclake.stacks.bundles import build_function
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.function import LambdaFunction
from cdclake.stacks.constructs.glue_job import GlueJob
from cdclake.stacks.constructs.grant import Grant, arn, through_s3
from cdclake.stacks.constructs.job_grants import publishes_metrics
from cdclake.stacks.constructs.job_schedule import JobSchedules
from cdclake.stacks.constructs.lake_bucket import BucketReference
from cdclake.stream_keeping import CHECK_EVERY_MINUTES

_MODULE = "stream_keeper"
_EVERY = f"rate({CHECK_EVERY_MINUTES} minutes)"
_TIMEOUT_S = 60
_ORDER = f"{naming.CONTROL_PREFIX}/{naming.STREAM_ORDER}"
_PAUSE = f"{naming.CONTROL_PREFIX}/{PAUSE}"


class StreamKeeper(Construct):
    """`lambda/stream_keeper`: starts the stream, and stops a run of an older deployment."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        job: GlueJob,
        deployment_id: str | None,
        is_scheduled: bool,
        state: BucketReference,
        schedules: JobSchedules,
        context: DeploymentContext,
    ) -> None:
        """Add the keeper.

        `deployment_id` is the deployment to keep running, None to keep none. If the stream
        `is_scheduled`, the keeper only ends what another keeper has started, or a paused run.
        """
        super().__init__(scope, construct_id)
        function = LambdaFunction(
            self,
            "Keeper",
            module=_MODULE,
            code=build_function(_MODULE).path,
            environment={
                "JOB": job.name,
                "BUCKET": state.name,
                "KEY": _ORDER,
                "PAUSE": _PAUSE,
                "DEPLOYMENT": deployment_id or "",
                "SCHEDULED": "true" if is_scheduled else "",
                "DIMENSION": context.prefix,
            },
            grants=_grants(job.name, state, context.key_arn),
            timeout_s=_TIMEOUT_S,
            context=context,
        )
        # Update the job's arguments first: the keeper restarts an ended stream with them.
        function.resource.node.add_dependency(job.resource)
        schedules.call("Keeper", schedule=_EVERY, function_arn=function.arn)
        self._listen(function, job.name)

    def _listen(self, function: LambdaFunction, job: str) -> None:
        """Invoke the keeper when a run ends; the schedule covers lost events."""
        rule = aws_events.CfnRule(
            self,
            "Ended",
            description=f"Invokes the stream keeper when a run of {job} ends",
            event_pattern={
                "source": ["aws.glue"],
                "detail-type": ["Glue Job State Change"],
                "detail": {
                    "jobName": [job],
                    "state": ["FAILED", "STOPPED", "SUCCEEDED", "TIMEOUT"],
                },
            },
            targets=[aws_events.CfnRule.TargetProperty(id="Keeper", arn=function.arn)],
        )
        aws_lambda.CfnPermission(
            self,
            "ByEvent",
            action="lambda:InvokeFunction",
            function_name=function.arn,
            principal="events.amazonaws.com",
            source_account=Aws.ACCOUNT_ID,
            source_arn=rule.attr_arn,
        )


def _grants(job: str, state: BucketReference, key_arn: str) -> list[Grant]:
    return [_runs(job), *_orders(state), through_s3(key_arn), publishes_metrics(NAMESPACE)]


def _orders(state: BucketReference) -> list[Grant]:
    """Allow using two objects; without listing, S3 answers 403 instead of 404 if it is missing."""
    return [
        Grant(actions=["s3:GetObject", "s3:PutObject"], on=[f"{state.arn}/{_ORDER}"]),
        Grant(actions=["s3:GetObject"], on=[f"{state.arn}/{_PAUSE}"]),
        Grant(actions=["s3:ListBucket"], on=[state.arn]),
    ]


def _runs(job: str) -> Grant:
    return Grant(
        actions=["glue:BatchStopJobRun", "glue:GetJobRuns", "glue:StartJobRun"],
        on=[arn("glue", f"job/{job}")],
    )
