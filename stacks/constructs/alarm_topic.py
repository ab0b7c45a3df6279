"""The encrypted SNS topic of all alarms; only these alarms may publish to it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from aws_cdk import aws_iam, aws_sns
from constructs import Construct

from cdclake.metrics import alarm_topic_name
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.encryption import alarms_arn
from cdclake.stacks.constructs.service_role import only_for

_REFERENCE = re.compile(r"\$\{secretsmanager:(.+):(.+)\}")


class AlarmTopic(Construct):
    """Topic under the deployment's key; each listed address receives a request to confirm."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        emails: Sequence[str],
        webhooks: Sequence[str],
        context: DeploymentContext,
    ) -> None:
        super().__init__(scope, construct_id)
        topic = aws_sns.CfnTopic(
            self,
            "Topic",
            topic_name=alarm_topic_name(context.prefix),
            kms_master_key_id=context.key_arn,
        )
        self.arn = topic.ref
        aws_sns.CfnTopicPolicy(
            self,
            "Policy",
            topics=[self.arn],
            policy_document=aws_iam.PolicyDocument(
                statements=[self._alarms(context.prefix), self._over_tls()]
            ),
        )
        for email in emails:
            aws_sns.CfnSubscription(
                self, email, topic_arn=self.arn, protocol="email", endpoint=email
            )

        for webhook in webhooks:
            digest = hashlib.sha256(webhook.encode()).hexdigest()[:8]
            aws_sns.CfnSubscription(
                self,
                f"Webhook{digest}",
                topic_arn=self.arn,
                protocol="https",
                endpoint=_address(webhook),
            )

    def _alarms(self, prefix: str) -> aws_iam.PolicyStatement:
        return aws_iam.PolicyStatement(
            sid="AlarmsOfThisDeployment",
            principals=[aws_iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            actions=["sns:Publish"],
            resources=[self.arn],
            conditions=only_for(alarms_arn(prefix)),
        )

    def _over_tls(self) -> aws_iam.PolicyStatement:
        """Deny publishing without TLS; a topic policy rejects `sns:*`."""
        return aws_iam.PolicyStatement(
            sid="OverTlsOnly",
            effect=aws_iam.Effect.DENY,
            principals=[aws_iam.StarPrincipal()],
            actions=["sns:Publish"],
            resources=[self.arn],
            conditions={"Bool": {"aws:SecureTransport": "false"}},
        )


def _address(webhook: str) -> str:
    """Return the address; of a secret CloudFormation reads it, so no template contains it."""
    found = _REFERENCE.fullmatch(webhook)
    if found is None:
        return webhook
    return f"{{{{resolve:secretsmanager:{found[1]}:SecretString:{found[2]}}}}}"
