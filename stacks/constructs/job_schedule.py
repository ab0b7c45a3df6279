"""Schedules of jobs: EventBridge Scheduler, and a dead-letter queue for failed starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aws_cdk import Aws, RemovalPolicy, aws_iam, aws_scheduler, aws_sqs
from constructs import Construct

from cdclake import naming
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant, arn
from cdclake.stacks.constructs.nag_suppressions import suppress
from cdclake.stacks.constructs.service_role import ServiceRole

_Schedule = aws_scheduler.CfnSchedule
_DEAD_LETTER_RETENTION_S = 14 * 24 * 3600  # the longest that SQS keeps a message
_MAX_RETRIES = 3
_MAX_EVENT_AGE_S = 900  # a later start is pointless: the next one is due soon
_START_RUN = "aws-sdk:glue:startJobRun"


class JobSchedules(Construct):
    """Group of schedules with one dead-letter queue.

    One role starts every job that a file can schedule: a role per schedule would fill the stack
    with half as many, and a role for the scheduled jobs would lose a job before its schedule is
    deleted.
    """

    def __init__(self, scope: Construct, construct_id: str, *, ground: DeploymentContext) -> None:
        super().__init__(scope, construct_id)
        self._ground = ground
        group = aws_scheduler.CfnScheduleGroup(self, "Group", name=ground.prefix)
        self._group = group.ref
        self._queue = self._add_queue()
        names = (naming.glue_job_name(ground.prefix, job) for job in naming.SCHEDULED_JOBS)
        starts = Grant(actions=["glue:StartJobRun"], on=[arn("glue", f"job/{n}") for n in names])
        self._starter = self._add_role("StartJobs", starts)
        self.failed_queue = self._queue.attr_queue_name

    def start_job(
        self,
        construct_id: str,
        *,
        schedule: str,
        job: str,
        arguments: Mapping[str, str] | None = None,
    ) -> None:
        """Start the Glue job on this schedule, with these arguments in addition to its own."""
        given = {"Arguments": dict(arguments)} if arguments else {}
        self._add(
            construct_id,
            schedule=schedule,
            target=f"arn:{Aws.PARTITION}:scheduler:::{_START_RUN}",
            message={"JobName": job, **given},
            role=self._starter,
        )

    def call(self, construct_id: str, *, schedule: str, function_arn: str) -> None:
        """Invoke the function on this schedule."""
        invokes = Grant(actions=["lambda:InvokeFunction"], on=[function_arn])
        self._add(
            construct_id,
            schedule=schedule,
            target=function_arn,
            message={},
            role=self._add_role(f"{construct_id}Role", invokes),
        )

    def _add(
        self,
        construct_id: str,
        *,
        schedule: str,
        target: str,
        message: Mapping[str, Any],
        role: ServiceRole,
    ) -> None:
        _Schedule(
            self,
            construct_id,
            name=naming.schedule_name(self._ground.prefix, construct_id.lower()),
            group_name=self._group,
            schedule_expression=schedule,
            schedule_expression_timezone="UTC",
            flexible_time_window=_Schedule.FlexibleTimeWindowProperty(mode="OFF"),
            kms_key_arn=self._ground.key_arn,
            target=_Schedule.TargetProperty(
                arn=target,
                role_arn=role.arn,
                input=json.dumps(message),
                retry_policy=_Schedule.RetryPolicyProperty(
                    maximum_retry_attempts=_MAX_RETRIES,
                    maximum_event_age_in_seconds=_MAX_EVENT_AGE_S,
                ),
                dead_letter_config=_Schedule.DeadLetterConfigProperty(arn=self._queue.attr_arn),
            ),
        )

    def _add_role(self, construct_id: str, statement: Grant) -> ServiceRole:
        return ServiceRole(
            self,
            construct_id,
            service="scheduler",
            # The ARN of the group: EventBridge Scheduler sends no schedule ARN as its source
            # (user guide, "Confused deputy prevention").
            for_arn=f"scheduler:{Aws.REGION}:{Aws.ACCOUNT_ID}:schedule-group/{self._ground.prefix}",
            statements=[statement, *self._sends_what_failed()],
        )

    def _sends_what_failed(self) -> list[Grant]:
        services = [f"{each}.{Aws.REGION}.amazonaws.com" for each in ("scheduler", "sqs")]
        return [
            Grant(actions=["sqs:SendMessage"], on=[self._queue.attr_arn]),
            Grant(
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                on=[self._ground.key_arn],
                only_if={"StringEquals": {"kms:ViaService": services}},
            ),
        ]

    def _add_queue(self) -> aws_sqs.CfnQueue:
        queue = aws_sqs.CfnQueue(
            self,
            "Failed",
            kms_master_key_id=self._ground.key_arn,
            message_retention_period=_DEAD_LETTER_RETENTION_S,
        )
        queue.apply_removal_policy(RemovalPolicy.DESTROY)
        suppress(queue, "SQS3", "this queue is the dead-letter queue")
        over_tls = aws_iam.PolicyStatement(
            sid="OverTlsOnly",
            effect=aws_iam.Effect.DENY,
            principals=[aws_iam.StarPrincipal()],
            actions=["sqs:*"],
            resources=[queue.attr_arn],
            conditions={"Bool": {"aws:SecureTransport": "false"}},
        )
        aws_sqs.CfnQueuePolicy(
            self,
            "FailedPolicy",
            queues=[queue.ref],
            policy_document=aws_iam.PolicyDocument(statements=[over_tls]),
        )
        return queue
