"""The observability stack: one dashboard that follows the data, and the alarms."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import CfnOutput
from aws_cdk.aws_cloudwatch import Alarm
from aws_cdk.aws_cloudwatch_actions import SnsAction
from aws_cdk.aws_sns import Topic
from constructs import Construct

from cdclake import naming
from cdclake.config.aws_model import ExistingSource
from cdclake.config.deployment import Deployment
from cdclake.config.kafka_model import ExistingKafka
from cdclake.stacks.constructs.alarm import AlarmSpec
from cdclake.stacks.constructs.alarm_topic import AlarmTopic
from cdclake.stacks.constructs.alarms import watches
from cdclake.stacks.constructs.dashboard import Dashboard
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.pipeline_stack import PipelineStack


class ObservabilityStack(PipelineStack):
    """Dashboard, and alarms that name the problem and its runbook and report recovery."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        failed_queue: str | None,
        functions: Sequence[str],
        context: DeploymentContext,
    ) -> None:
        """Add dashboard and alarms.

        Args:
            scope: the app.
            deployment: whose parts are monitored.
            failed_queue: name of the schedules' dead-letter queue; None without jobs.
            functions: names of the functions that Firehose calls.
            context: shared by all parts of the deployment.
        """
        super().__init__(scope, deployment, "observability", "dashboard and alarms")
        told = deployment.aws.monitoring
        topic = AlarmTopic(self, "Topic", emails=told.email, webhooks=told.webhook, context=context)
        self.alarm_topic = Topic.from_topic_arn(self, "Told", topic.arn)
        self._action = SnsAction(self.alarm_topic)
        watched = watches(deployment, failed_queue=failed_queue, functions=functions)
        Dashboard(
            self,
            "Dashboard",
            deployment=deployment,
            alarms=[self._add_alarm(each) for each in watched],
            failed_queue=failed_queue,
            functions=functions,
        )
        CfnOutput(self, "AlarmTopic", value=topic.arn, description="SNS topic of all alarms")
        self._ask_owners()

    def _add_alarm(self, watch: AlarmSpec) -> Alarm:
        prefix = self.deployment.prefix
        alarm = Alarm(
            self,
            "".join(word.capitalize() for word in watch.full_name.split("-")),
            alarm_name=f"{prefix}-{watch.full_name}",
            alarm_description=f"{prefix}: {watch.description} Runbook:"
            f" {naming.runbook_command(watch.name)}",
            metric=watch.metric,
            threshold=watch.threshold,
            comparison_operator=watch.beyond,
            evaluation_periods=watch.periods,
            datapoints_to_alarm=watch.breaching,
            treat_missing_data=watch.missing,
        )
        alarm.add_alarm_action(self._action)
        alarm.add_ok_action(self._action)
        return alarm

    def _ask_owners(self) -> None:
        """Ask the owners of existing parts for alarms: this stack cannot name their metrics."""
        aws = self.deployment.aws
        if not self.deployment.plan.tables:
            return
        if isinstance(aws.source.declared, ExistingSource):
            self.ask_owner(
                "SourceOwner",
                f"Monitor {aws.source.declared.endpoint}: the WAL retained by the replication slot"
                f" {self.deployment.plan.source_object}, and the free disk space",
            )
        if isinstance(aws.kafka.declared, ExistingKafka):
            self.ask_owner("KafkaOwner", "Monitor the brokers' disks and offline partitions")
