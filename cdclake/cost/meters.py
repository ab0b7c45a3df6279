"""Meters of a deployment's templates: what is billed by hour or month, whatever flows.

Each billed resource type has a function in `METERS`; `FREE` lists the others. A test fails for a
type that is in neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

HOURS = 730.0  # a month's, as AWS's calculator counts
DPUS = {"G.025X": 0.25, "G.1X": 1.0, "G.2X": 2.0, "G.4X": 4.0, "G.8X": 8.0}
_TASKS_PER_WEB_SERVER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """Units of one meter that a month needs, and where they come from."""

    meter: str  # as in `prices.PRICES`
    quantity: float
    unit: str
    detail: str


Resource = Mapping[str, Any]
Template = Mapping[str, Any]


def fixed_quantities(templates: Mapping[str, Template]) -> list[Quantity]:
    """Return what the resources of the templates are billed for by time."""
    return [
        quantity
        for template in templates.values()
        for resource in template["Resources"].values()
        for quantity in _of(resource, template["Resources"])
    ]


def _of(resource: Resource, others: Mapping[str, Resource]) -> Iterator[Quantity]:
    properties = resource.get("Properties", {})
    meter = METERS.get(resource["Type"])
    if meter is not None:
        yield from meter(properties)
    cluster = properties.get("DBClusterIdentifier")
    if resource["Type"] == "AWS::RDS::DBInstance" and cluster is not None:
        yield from _capacity(others[cluster["Ref"]]["Properties"])


def _brokers(properties: Resource) -> Iterator[Quantity]:
    count, group = properties["NumberOfBrokerNodes"], properties["BrokerNodeGroupInfo"]
    kind = group["InstanceType"]
    yield Quantity(
        meter=f"msk.{kind}", quantity=count * HOURS, unit="h", detail=f"{count} brokers {kind}"
    )
    disk = group.get("StorageInfo", {}).get("EBSStorageInfo", {}).get("VolumeSize")
    if disk is not None:
        yield Quantity(
            meter="msk.storage",
            quantity=count * disk,
            unit="GB",
            detail=f"{count} disks of {disk} GB, before MSK extends them",
        )
    if "ConnectivityInfo" in group:
        yield Quantity(
            meter="msk.private_connectivity",
            quantity=HOURS,
            unit="h",
            detail="private connectivity for Firehose",
        )


def _admin_secret(properties: Resource) -> Iterator[Quantity]:
    """Yield the administrator's secret, which RDS keeps."""
    if properties.get("ManageMasterUserPassword"):
        yield Quantity(
            meter="secrets.secret",
            quantity=1,
            unit="secrets",
            detail="the administrator's, by RDS",
        )


def _database(properties: Resource) -> Iterator[Quantity]:
    yield from _admin_secret(properties)
    if "DBClusterIdentifier" in properties:
        return  # its capacity is billed, which the cluster has
    kind, copies = properties["DBInstanceClass"], 2 if properties.get("MultiAZ") else 1
    standby = " with a standby" if copies == 2 else ""
    yield Quantity(
        meter=f"rds.{kind}", quantity=copies * HOURS, unit="h", detail=f"{kind}{standby}"
    )
    disk = int(properties["AllocatedStorage"])
    yield Quantity(
        meter="rds.storage",
        quantity=copies * disk,
        unit="GB",
        detail=f"{copies} x {disk} GB of gp3, before it grows",
    )


def _capacity(cluster: Resource) -> Iterator[Quantity]:
    """Yield the capacity of one instance of the cluster."""
    least = cluster["ServerlessV2ScalingConfiguration"]["MinCapacity"]
    yield Quantity(
        meter="aurora.capacity",
        quantity=least * HOURS,
        unit="ACU-h",
        detail=f"at least {least} ACU for each instance",
    )


DEBEZIUM_MCUS = "MCU of Connect"  # of the Debezium connector; others are named


def _connector(properties: Resource) -> Iterator[Quantity]:
    capacity = properties["Capacity"]["ProvisionedCapacity"]
    mcus = int(capacity["McuCount"]) * int(capacity["WorkerCount"])
    name = str(properties["ConnectorName"])
    detail = DEBEZIUM_MCUS if name.endswith("-source") else f"MCU of the connector {name}"
    yield Quantity(
        meter="connect.mcu", quantity=mcus * HOURS, unit="MCU-h", detail=f"{mcus} {detail}"
    )


def _endpoint(properties: Resource) -> Iterator[Quantity]:
    if properties["VpcEndpointType"] == "Interface":
        zones = len(properties["SubnetIds"])
        yield Quantity(
            meter="vpc.endpoint", quantity=zones * HOURS, unit="h", detail="endpoints, by zone"
        )


def _task(properties: Resource) -> Iterator[Quantity]:
    """Yield the tasks of a web server, whose definition has their size."""
    cpu, memory = int(properties["Cpu"]) / 1024, int(properties["Memory"]) / 1024
    hours, detail = _TASKS_PER_WEB_SERVER * HOURS, f"{_TASKS_PER_WEB_SERVER} tasks"
    yield Quantity(meter="fargate.cpu", quantity=hours * cpu, unit="vCPU-h", detail=detail)
    yield Quantity(meter="fargate.memory", quantity=hours * memory, unit="GB-h", detail=detail)


def _alarm(properties: Resource) -> Iterator[Quantity]:
    """Yield an alarm's metrics: each is billed."""
    metrics = [each for each in properties.get("Metrics", ()) if "MetricStat" in each]
    count = max(len(metrics), 1)
    yield Quantity(meter="cloudwatch.alarm", quantity=count, unit="metrics", detail="alarms")


def _counted(meter: str, unit: str, detail: str) -> Callable[[Resource], Iterator[Quantity]]:
    def one(properties: Resource) -> Iterator[Quantity]:
        del properties
        yield Quantity(meter=meter, quantity=1, unit=unit, detail=detail)

    return one


METERS: Mapping[str, Callable[[Resource], Iterator[Quantity]]] = {
    "AWS::MSK::Cluster": _brokers,
    "AWS::RDS::DBInstance": _database,
    "AWS::RDS::DBCluster": _admin_secret,
    "AWS::KafkaConnect::Connector": _connector,
    "AWS::EC2::VPCEndpoint": _endpoint,
    "AWS::ECS::TaskDefinition": _task,
    "AWS::CloudWatch::Alarm": _alarm,
    "AWS::CloudWatch::Dashboard": _counted("cloudwatch.dashboard", "dashboards", "dashboard"),
    "AWS::KMS::Key": _counted("kms.key", "keys", "key"),
    "AWS::SecretsManager::Secret": _counted("secrets.secret", "secrets", "secrets"),
    "AWS::Kinesis::Stream": _counted("kinesis.stream", "streams", "stream, on demand"),
}
# Billed by what flows or is stored (`usage`), or not at all.
BY_USAGE = {
    "AWS::Athena::WorkGroup": "queries, by the bytes that they read",
    "AWS::EC2::FlowLog": "its log",
    "AWS::ECS::Cluster": "metrics of Container Insights",
    "AWS::Glue::Job": "runs",
    "AWS::Glue::TableOptimizer": "runs",
    "AWS::KinesisFirehose::DeliveryStream": "data",
    "AWS::Lambda::Function": "calls",
    "AWS::Logs::LogGroup": "data",
    "AWS::S3::Bucket": "storage and requests",
    "AWS::SNS::Topic": "messages: those of alarms are free",
    "AWS::SQS::Queue": "messages: the first million is free",
    "AWS::Scheduler::Schedule": "starts: 14 million are free",
}
FREE = {
    "AWS::ApplicationAutoScaling::ScalableTarget",
    "AWS::ApplicationAutoScaling::ScalingPolicy",
    "AWS::Athena::NamedQuery",
    "AWS::EC2::RouteTable",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::EC2::Subnet",
    "AWS::EC2::SubnetRouteTableAssociation",
    "AWS::EC2::VPC",
    "AWS::ECS::Service",
    "AWS::Events::Rule",
    "AWS::Glue::Connection",
    "AWS::Glue::Database",
    "AWS::Glue::Registry",
    "AWS::Glue::SecurityConfiguration",
    "AWS::Glue::Table",
    "AWS::IAM::Role",
    "AWS::KMS::Alias",
    "AWS::KafkaConnect::CustomPlugin",
    "AWS::KafkaConnect::WorkerConfiguration",
    "AWS::LakeFormation::PrincipalPermissions",
    "AWS::LakeFormation::Resource",
    "AWS::Lambda::Permission",
    "AWS::Logs::LogStream",
    "AWS::Logs::MetricFilter",
    "AWS::MSK::ClusterPolicy",
    "AWS::MSK::Configuration",
    "AWS::MSK::Topic",
    "AWS::RDS::DBClusterParameterGroup",
    "AWS::RDS::DBParameterGroup",
    "AWS::RDS::DBSubnetGroup",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::Subscription",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::QueuePolicy",
    "AWS::Scheduler::ScheduleGroup",
}
