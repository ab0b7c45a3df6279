"""The observability stack: one dashboard along the data's way, and alarms where it can end."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import CfnOutput
from aws_cdk.aws_cloudwatch import Alarm
from aws_cdk.aws_cloudwatch_actions import SnsAction
from aws_cdk.aws_sns import Topic
from constructs import Construct

from cdclake import naming
from cdclake.config.aws_model import ExistingKafka, ExistingSource
from cdclake.config.deployment import Deployment
from cdclake.stacks.constructs.alarm import AlarmSpec
from cdclake.stacks.constructs.alarm_topic import AlarmTopic
from cdclake.stacks.constructs.alarms import watches
from cdclake.stacks.constructs.dashboard import Dashboard
from cdclake.stacks.network_stack import NetworkStack
from cdclake.stacks.pipeline_stack import PipelineStack
from cdclake.stacks.processing_stack import ProcessingStack


class ObservabilityStack(PipelineStack):
    """Each alarm says what is wrong and which runbook to open, and says when it is over."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        network: NetworkStack,
        processing: ProcessingStack | None,
        functions: Sequence[str],
    ) -> None:
        """`functions` are the names of Firehose's; without `processing` there are no jobs."""
        super().__init__(scope, deployment, "observability", "dashboard and alarms")
        topic = AlarmTopic(
            self, "Topic", emails=deployment.aws.monitoring.email, ground=network.ground
        )
        self._action = SnsAction(Topic.from_topic_arn(self, "Told", topic.arn))
        queue = processing.failed_queue if processing is not None else None
        watched = watches(deployment, failed_queue=queue, functions=functions)
        Dashboard(
            self,
            "Dashboard",
            deployment=deployment,
            alarms=[self._add_alarm(each) for each in watched],
            failed_queue=queue,
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
            f" {naming.runbook(watch.name)}",
            metric=watch.metric,
            threshold=watch.threshold,
            comparison_operator=watch.beyond,
            evaluation_periods=watch.periods,
            treat_missing_data=watch.missing,
        )
        alarm.add_alarm_action(self._action)
        alarm.add_ok_action(self._action)
        return alarm

    def _ask_owners(self) -> None:
        """What exists has its owner's alarms; ours would have to know its name in CloudWatch."""
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
