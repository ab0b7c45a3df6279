"""The brokers: MSK provisioned, reached by IAM over TLS and in no other way."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_msk
from constructs import Construct

from cdclake.config.aws_model import CreatedKafka
from cdclake.debezium.connector import MAX_RECORD_BYTES
from cdclake.debezium.topics import RETENTION_DAYS
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.log_group import LogGroup

# The KRaft mode: a cluster with ZooKeeper and two zones cannot be migrated later.
_VERSION = "3.9.x.kraft"
_MAX_REPLICAS = 3
# What a cluster's policy lets Firehose do to come by private links.
FIREHOSE_ACTIONS = (
    "kafka:CreateVpcConnection",
    "kafka:DescribeCluster",
    "kafka:DescribeClusterV2",
    "kafka:GetBootstrapBrokers",
)
_Cluster = aws_msk.CfnCluster


class KafkaCluster(Construct):
    """A cluster with as many brokers in each subnet, on which no topic creates itself."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        sizes: CreatedKafka,
        is_private: bool,
        security_group: str,
        ground: DeploymentContext,
    ) -> None:
        """`is_private`: services of AWS may reach it by private links; not while it is created."""
        super().__init__(scope, construct_id)
        subnet_ids = ground.subnet_ids
        self.replicas = min(_MAX_REPLICAS, len(subnet_ids))
        # Under this prefix a service's right to deliver is not counted against the account's few
        # policies on logs (CloudWatch Logs user guide, "Logs sent to CloudWatch Logs").
        log = LogGroup(self, "Log", ground=ground, name=f"/aws/vendedlogs/{ground.prefix}/kafka")
        configuration = self._add_configuration(ground.prefix)
        cluster = _Cluster(
            self,
            "Cluster",
            # A replacement of the cluster would want the same name, and so cannot happen unseen.
            cluster_name=ground.prefix,
            kafka_version=_VERSION,
            number_of_broker_nodes=sizes.brokers_per_zone * len(subnet_ids),
            broker_node_group_info=_brokers(sizes, is_private, subnet_ids, security_group),
            client_authentication=_by_iam_only(),
            encryption_info=_encrypted(ground.key_arn),
            configuration_info=_Cluster.ConfigurationInfoProperty(
                arn=configuration.attr_arn,
                revision=configuration.attr_latest_revision_revision,
            ),
            # The one level without a charge; alarms and dashboard use none of the others.
            enhanced_monitoring="DEFAULT",
            logging_info=_logged(log.name),
        )
        cluster.apply_removal_policy(ground.kept)
        self.arn = cluster.attr_arn
        if is_private:
            self._admit_firehose()

    def _admit_firehose(self) -> None:
        """Without conditions, as its guide has it; who then reads is told by roles of ours."""
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

    def _add_configuration(self, name: str) -> aws_msk.CfnConfiguration:
        settings = {
            "auto.create.topics.enable": "false",
            "default.replication.factor": str(self.replicas),
            # One broker may be away, as every update of the cluster wants it.
            "min.insync.replicas": str(self.replicas - 1),
            "unclean.leader.election.enable": "false",
            "log.retention.hours": str(RETENTION_DAYS * 24),
            "message.max.bytes": str(MAX_RECORD_BYTES),
            # Else a record of that size would never reach the other replicas.
            "replica.fetch.max.bytes": str(MAX_RECORD_BYTES),
        }
        return aws_msk.CfnConfiguration(
            self,
            "Configuration",
            name=name,
            description="Topics are declared, and records as large as the connector sends",
            server_properties="\n".join(f"{key}={value}" for key, value in settings.items()),
        )


def _brokers(
    sizes: CreatedKafka, is_private: bool, subnet_ids: Sequence[str], security_group: str
) -> aws_msk.CfnCluster.BrokerNodeGroupInfoProperty:
    """MSK refuses connectivity settings when a cluster is created."""
    return _Cluster.BrokerNodeGroupInfoProperty(
        client_subnets=list(subnet_ids),
        instance_type=sizes.instance,
        security_groups=[security_group],
        storage_info=_Cluster.StorageInfoProperty(
            ebs_storage_info=_Cluster.EBSStorageInfoProperty(volume_size=sizes.volume_gb)
        ),
        connectivity_info=_by_private_links() if is_private else None,
    )


def _by_private_links() -> aws_msk.CfnCluster.ConnectivityInfoProperty:
    """For clients that sign in by IAM, as all do here."""
    iam = _Cluster.VpcConnectivityIamProperty(enabled=True)
    return _Cluster.ConnectivityInfoProperty(
        vpc_connectivity=_Cluster.VpcConnectivityProperty(
            client_authentication=_Cluster.VpcConnectivityClientAuthenticationProperty(
                sasl=_Cluster.VpcConnectivitySaslProperty(iam=iam)
            )
        )
    )


def _by_iam_only() -> aws_msk.CfnCluster.ClientAuthenticationProperty:
    return _Cluster.ClientAuthenticationProperty(
        sasl=_Cluster.SaslProperty(
            iam=_Cluster.IamProperty(enabled=True), scram=_Cluster.ScramProperty(enabled=False)
        ),
        tls=_Cluster.TlsProperty(enabled=False),
        unauthenticated=_Cluster.UnauthenticatedProperty(enabled=False),
    )


def _encrypted(key_arn: str) -> aws_msk.CfnCluster.EncryptionInfoProperty:
    return _Cluster.EncryptionInfoProperty(
        encryption_at_rest=_Cluster.EncryptionAtRestProperty(data_volume_kms_key_id=key_arn),
        encryption_in_transit=_Cluster.EncryptionInTransitProperty(
            client_broker="TLS", in_cluster=True
        ),
    )


def _logged(group: str) -> aws_msk.CfnCluster.LoggingInfoProperty:
    return _Cluster.LoggingInfoProperty(
        broker_logs=_Cluster.BrokerLogsProperty(
            cloud_watch_logs=_Cluster.CloudWatchLogsProperty(enabled=True, log_group=group)
        )
    )
