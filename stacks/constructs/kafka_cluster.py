"""The Kafka cluster: MSK provisioned, with IAM over TLS only."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws, aws_applicationautoscaling, aws_msk
from constructs import Construct

from cdclake.config import versions
from cdclake.config.kafka_model import CreatedKafka
from cdclake.debezium.record_limit import MAX_RECORD_BYTES
from cdclake.debezium.topics import RETENTION_DAYS, durable_settings
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.log_group import LogGroup

_MAX_REPLICAS = 3
# The actions that a cluster policy must allow Firehose for private connectivity.
FIREHOSE_ACTIONS = (
    "kafka:CreateVpcConnection",
    "kafka:DescribeCluster",
    "kafka:DescribeClusterV2",
    "kafka:GetBootstrapBrokers",
)
_EXTENDED_ABOVE_PERCENT = 60
_Cluster = aws_msk.CfnCluster
_ScalingPolicy = aws_applicationautoscaling.CfnScalingPolicy


class KafkaCluster(Construct):
    """Cluster with equally many brokers per subnet, without automatic topic creation."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        sizes: CreatedKafka,
        is_private: bool,
        security_group: str,
        context: DeploymentContext,
    ) -> None:
        """Add the cluster; `is_private` enables private connectivity, impossible at creation."""
        super().__init__(scope, construct_id)
        subnet_ids, self._name = context.subnet_ids, context.prefix
        self.replicas = min(_MAX_REPLICAS, len(subnet_ids))
        configuration = self._add_configuration(is_express=sizes.is_express)
        cluster = _Cluster(
            self,
            "Cluster",
            # With a fixed name a replacement fails instead of going unnoticed.
            cluster_name=context.prefix,
            kafka_version=versions.KAFKA,
            number_of_broker_nodes=sizes.brokers_per_zone * len(subnet_ids),
            broker_node_group_info=_brokers(sizes, is_private, subnet_ids, security_group),
            client_authentication=_iam_authentication(),
            encryption_info=_encryption_info(context.key_arn),
            configuration_info=_Cluster.ConfigurationInfoProperty(
                arn=configuration.attr_arn,
                revision=configuration.attr_latest_revision_revision,
            ),
            # The only free level; alarms and dashboard need no metrics of the others.
            enhanced_monitoring="DEFAULT",
            logging_info=_logging_info(self._add_log(context).name),
        )
        cluster.apply_removal_policy(context.kept)
        self.arn = cluster.attr_arn
        if not sizes.is_express:
            self._extend_disks(sizes)
        if is_private:
            self._admit_firehose()

    def _add_log(self, context: DeploymentContext) -> LogGroup:
        # Under this prefix log delivery does not count against the account's limit of resource
        # policies (CloudWatch Logs user guide, "Logs sent to CloudWatch Logs").
        name = f"/aws/vendedlogs/{context.prefix}/kafka"
        return LogGroup(self, "Log", context=context, name=name)

    def _extend_disks(self, sizes: CreatedKafka) -> None:
        """Have MSK extend the brokers' disks; only Express brokers have none."""
        role = (
            f"arn:{Aws.PARTITION}:iam::{Aws.ACCOUNT_ID}:role/aws-service-role/kafka.application-"
            "autoscaling.amazonaws.com/AWSServiceRoleForApplicationAutoScaling_KafkaCluster"
        )
        target = aws_applicationautoscaling.CfnScalableTarget(
            self,
            "Disks",
            service_namespace="kafka",
            scalable_dimension="kafka:broker-storage:VolumeSize",
            resource_id=self.arn,
            min_capacity=1,
            max_capacity=sizes.largest_disk_gb,
            role_arn=role,
        )
        utilization = _ScalingPolicy.PredefinedMetricSpecificationProperty(
            predefined_metric_type="KafkaBrokerStorageUtilization"
        )
        _ScalingPolicy(
            self,
            "DiskPolicy",
            policy_name=f"{self._name}-disks",
            policy_type="TargetTrackingScaling",
            scaling_target_id=target.ref,
            target_tracking_scaling_policy_configuration=(
                _ScalingPolicy.TargetTrackingScalingPolicyConfigurationProperty(
                    predefined_metric_specification=utilization,
                    target_value=_EXTENDED_ABOVE_PERCENT,
                    disable_scale_in=True,  # MSK cannot shrink a disk
                )
            ),
        )

    def _admit_firehose(self) -> None:
        """Admit Firehose without conditions, as its guide says; our roles limit reading."""
        aws_msk.CfnClusterPolicy(
            self,
            "Policy",
            cluster_arn=self.arn,
            policy={
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"Service": "firehose.amazonaws.com"},
                        "Action": list(FIREHOSE_ACTIONS),
                        "Resource": self.arn,
                    }
                ],
            },
        )

    def _add_configuration(self, *, is_express: bool) -> aws_msk.CfnConfiguration:
        name, settings = self._name, {"auto.create.topics.enable": "false"}
        settings["message.max.bytes"] = str(MAX_RECORD_BYTES)
        if not is_express:  # which has fixed values for the replication, and refuses these
            settings |= self._replication_settings()
        return aws_msk.CfnConfiguration(
            self,
            "Configuration",
            name=name,
            description="Topics are declared, and records as large as the connector sends",
            server_properties="\n".join(f"{key}={value}" for key, value in settings.items()),
        )

    def _replication_settings(self) -> dict[str, str]:
        return {
            "default.replication.factor": str(self.replicas),
            **durable_settings(self.replicas),
            "log.retention.hours": str(RETENTION_DAYS * 24),
            # Otherwise records of that size would never be replicated.
            "replica.fetch.max.bytes": str(MAX_RECORD_BYTES),
        }


def _brokers(
    sizes: CreatedKafka, is_private: bool, subnet_ids: Sequence[str], security_group: str
) -> aws_msk.CfnCluster.BrokerNodeGroupInfoProperty:
    """Return the brokers; MSK rejects connectivity settings at creation."""
    return _Cluster.BrokerNodeGroupInfoProperty(
        client_subnets=list(subnet_ids),
        instance_type=sizes.instance,
        security_groups=[security_group],
        storage_info=None if sizes.is_express else _disks(sizes.volume_gb),
        connectivity_info=_private_connectivity() if is_private else None,
    )


def _disks(volume_gb: int) -> aws_msk.CfnCluster.StorageInfoProperty:
    return _Cluster.StorageInfoProperty(
        ebs_storage_info=_Cluster.EBSStorageInfoProperty(volume_size=volume_gb)
    )


def _private_connectivity() -> aws_msk.CfnCluster.ConnectivityInfoProperty:
    """Return private connectivity for IAM, which all clients use."""
    iam = _Cluster.VpcConnectivityIamProperty(enabled=True)
    return _Cluster.ConnectivityInfoProperty(
        vpc_connectivity=_Cluster.VpcConnectivityProperty(
            client_authentication=_Cluster.VpcConnectivityClientAuthenticationProperty(
                sasl=_Cluster.VpcConnectivitySaslProperty(iam=iam)
            )
        )
    )


def _iam_authentication() -> aws_msk.CfnCluster.ClientAuthenticationProperty:
    return _Cluster.ClientAuthenticationProperty(
        sasl=_Cluster.SaslProperty(
            iam=_Cluster.IamProperty(enabled=True), scram=_Cluster.ScramProperty(enabled=False)
        ),
        tls=_Cluster.TlsProperty(enabled=False),
        unauthenticated=_Cluster.UnauthenticatedProperty(enabled=False),
    )


def _encryption_info(key_arn: str) -> aws_msk.CfnCluster.EncryptionInfoProperty:
    return _Cluster.EncryptionInfoProperty(
        encryption_at_rest=_Cluster.EncryptionAtRestProperty(data_volume_kms_key_id=key_arn),
        encryption_in_transit=_Cluster.EncryptionInTransitProperty(
            client_broker="TLS", in_cluster=True
        ),
    )


def _logging_info(group: str) -> aws_msk.CfnCluster.LoggingInfoProperty:
    return _Cluster.LoggingInfoProperty(
        broker_logs=_Cluster.BrokerLogsProperty(
            cloud_watch_logs=_Cluster.CloudWatchLogsProperty(enabled=True, log_group=group)
        )
    )
