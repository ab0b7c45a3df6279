"""What CloudFormation sends to AWS for a resource, as far as botocore's service models tell.

A linter knows CloudFormation's own schema. This is a second opinion, from the interface behind it:
required values, types, ranges, enumerations, and properties that the call does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import botocore.session
from botocore.model import OperationModel, Shape
from botocore.validate import ParamValidator

TOKEN = "arn:aws:service:region:111122223333:resource/x"  # of a shape's usual length
NESTED = {
    "IcebergTableInput": "CreateIcebergTableInput",
    "S3Encryptions": "S3Encryption",
}  # properties that a call has under another name
NUMBERS = {"integer", "long", "float", "double"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The call that creates a resource of one type."""

    service: str
    operation: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()  # properties that another call sends
    named: tuple[str, ...] = ()  # what CloudFormation makes up: names above all
    filled: Mapping[str, Any] = field(default_factory=dict)  # what it adds of its own


def ec2(operation: str, *elsewhere: str, **renamed: str) -> Call:
    """A call of EC2, which names nothing."""
    return Call(service="ec2", operation=operation, elsewhere=frozenset(elsewhere), renamed=renamed)


CALLS = {
    "AWS::ApplicationAutoScaling::ScalableTarget": Call(
        service="application-autoscaling", operation="RegisterScalableTarget"
    ),
    "AWS::ApplicationAutoScaling::ScalingPolicy": Call(
        service="application-autoscaling",
        operation="PutScalingPolicy",
        # CloudFormation reads these from the target.
        elsewhere=frozenset({"ScalingTargetId"}),
        filled={
            "ResourceId": TOKEN,
            "ScalableDimension": "kafka:broker-storage:VolumeSize",
            "ServiceNamespace": "kafka",
        },
    ),
    "AWS::Athena::NamedQuery": Call(service="athena", operation="CreateNamedQuery"),
    "AWS::Athena::WorkGroup": Call(
        service="athena",
        operation="CreateWorkGroup",
        renamed={"WorkGroupConfiguration": "Configuration"},
        elsewhere=frozenset({"RecursiveDeleteOption"}),
    ),
    "AWS::CloudWatch::Alarm": Call(service="cloudwatch", operation="PutMetricAlarm"),
    "AWS::CloudWatch::Dashboard": Call(service="cloudwatch", operation="PutDashboard"),
    "AWS::EC2::FlowLog": ec2("CreateFlowLogs", ResourceId="ResourceIds"),
    "AWS::EC2::RouteTable": ec2("CreateRouteTable"),
    "AWS::EC2::SecurityGroup": Call(
        service="ec2",
        operation="CreateSecurityGroup",
        renamed={"GroupDescription": "Description"},
        elsewhere=frozenset({"SecurityGroupEgress"}),
        named=("GroupName",),
    ),
    "AWS::EC2::SecurityGroupEgress": ec2(
        "AuthorizeSecurityGroupEgress", "Description", "DestinationSecurityGroupId"
    ),
    "AWS::EC2::SecurityGroupIngress": ec2(
        "AuthorizeSecurityGroupIngress", "Description", "SourceSecurityGroupId"
    ),
    "AWS::EC2::Subnet": ec2("CreateSubnet", "MapPublicIpOnLaunch"),
    "AWS::EC2::SubnetRouteTableAssociation": ec2("AssociateRouteTable"),
    "AWS::EC2::VPC": ec2("CreateVpc", "EnableDnsHostnames", "EnableDnsSupport"),
    "AWS::EC2::VPCEndpoint": ec2("CreateVpcEndpoint"),
    "AWS::ECS::Cluster": Call(
        service="ecs", operation="CreateCluster", renamed={"ClusterSettings": "settings"}
    ),
    "AWS::ECS::Service": Call(service="ecs", operation="CreateService"),
    "AWS::ECS::TaskDefinition": Call(service="ecs", operation="RegisterTaskDefinition"),
    "AWS::Events::Rule": Call(
        service="events",
        operation="PutRule",
        elsewhere=frozenset({"Targets"}),
        named=("Name",),
    ),
    "AWS::Glue::Connection": Call(service="glue", operation="CreateConnection"),
    "AWS::Glue::Database": Call(service="glue", operation="CreateDatabase"),
    "AWS::Glue::Job": Call(service="glue", operation="CreateJob"),
    "AWS::Glue::SecurityConfiguration": Call(
        service="glue", operation="CreateSecurityConfiguration"
    ),
    "AWS::Glue::Table": Call(service="glue", operation="CreateTable"),
    "AWS::Glue::TableOptimizer": Call(service="glue", operation="CreateTableOptimizer"),
    "AWS::IAM::Role": Call(
        service="iam",
        operation="CreateRole",
        elsewhere=frozenset({"Policies"}),
        named=("RoleName",),
    ),
    "AWS::KafkaConnect::Connector": Call(service="kafkaconnect", operation="CreateConnector"),
    "AWS::KafkaConnect::CustomPlugin": Call(service="kafkaconnect", operation="CreateCustomPlugin"),
    "AWS::KafkaConnect::WorkerConfiguration": Call(
        service="kafkaconnect", operation="CreateWorkerConfiguration"
    ),
    "AWS::Kinesis::Stream": Call(
        service="kinesis",
        operation="CreateStream",
        renamed={"Name": "StreamName"},
        elsewhere=frozenset({"RetentionPeriodHours", "StreamEncryption"}),
    ),
    "AWS::KinesisFirehose::DeliveryStream": Call(
        service="firehose", operation="CreateDeliveryStream"
    ),
    "AWS::KMS::Alias": Call(service="kms", operation="CreateAlias"),
    "AWS::KMS::Key": Call(
        service="kms",
        operation="CreateKey",
        renamed={"KeyPolicy": "Policy"},
        elsewhere=frozenset({"EnableKeyRotation"}),
    ),
    "AWS::Glue::Registry": Call(
        service="glue",
        operation="CreateRegistry",
        renamed={"Name": "RegistryName"},
        named=("RegistryName",),
    ),
    "AWS::LakeFormation::PrincipalPermissions": Call(
        service="lakeformation", operation="GrantPermissions"
    ),
    "AWS::LakeFormation::Resource": Call(service="lakeformation", operation="RegisterResource"),
    "AWS::Lambda::Function": Call(
        service="lambda", operation="CreateFunction", named=("FunctionName",)
    ),
    "AWS::Lambda::Permission": Call(
        service="lambda", operation="AddPermission", named=("StatementId",)
    ),
    "AWS::Logs::LogGroup": Call(
        service="logs",
        operation="CreateLogGroup",
        elsewhere=frozenset({"RetentionInDays"}),
        named=("logGroupName",),
    ),
    "AWS::Logs::LogStream": Call(service="logs", operation="CreateLogStream"),
    "AWS::Logs::MetricFilter": Call(
        service="logs", operation="PutMetricFilter", named=("filterName",)
    ),
    "AWS::MSK::Cluster": Call(service="kafka", operation="CreateCluster"),
    "AWS::MSK::ClusterPolicy": Call(service="kafka", operation="PutClusterPolicy"),
    "AWS::MSK::Configuration": Call(service="kafka", operation="CreateConfiguration"),
    "AWS::MSK::Topic": Call(service="kafka", operation="CreateTopic"),
    "AWS::RDS::DBCluster": Call(
        service="rds",
        operation="CreateDBCluster",
        elsewhere=frozenset({"MasterUserSecret"}),  # sent as MasterUserSecretKmsKeyId
    ),
    "AWS::RDS::DBClusterParameterGroup": Call(
        service="rds",
        operation="CreateDBClusterParameterGroup",
        renamed={"Family": "DBParameterGroupFamily"},
        elsewhere=frozenset({"Parameters"}),
        named=("DBClusterParameterGroupName",),
    ),
    "AWS::RDS::DBInstance": Call(
        service="rds",
        operation="CreateDBInstance",
        renamed={"VPCSecurityGroups": "VpcSecurityGroupIds"},
        # Asked for by a change, by a deletion, and as MasterUserSecretKmsKeyId.
        elsewhere=frozenset(
            {"AllowMajorVersionUpgrade", "DeleteAutomatedBackups", "MasterUserSecret"}
        ),
    ),
    "AWS::RDS::DBParameterGroup": Call(
        service="rds",
        operation="CreateDBParameterGroup",
        renamed={"Family": "DBParameterGroupFamily"},
        elsewhere=frozenset({"Parameters"}),
        named=("DBParameterGroupName",),
    ),
    "AWS::RDS::DBSubnetGroup": Call(
        service="rds", operation="CreateDBSubnetGroup", named=("DBSubnetGroupName",)
    ),
    # Each property of a bucket has a call of its own.
    "AWS::S3::Bucket": Call(
        service="s3",
        operation="CreateBucket",
        elsewhere=frozenset(
            {"BucketEncryption", "LifecycleConfiguration", "LoggingConfiguration"}
            | {"OwnershipControls", "PublicAccessBlockConfiguration", "VersioningConfiguration"}
        ),
        named=("Bucket",),
    ),
    "AWS::S3::BucketPolicy": Call(
        service="s3", operation="PutBucketPolicy", renamed={"PolicyDocument": "Policy"}
    ),
    "AWS::SNS::Subscription": Call(service="sns", operation="Subscribe"),
    "AWS::SNS::Topic": Call(
        service="sns",
        operation="CreateTopic",
        renamed={"TopicName": "Name"},
        elsewhere=frozenset({"KmsMasterKeyId"}),  # sent as an attribute
    ),
    "AWS::SNS::TopicPolicy": Call(
        service="sns",
        operation="SetTopicAttributes",
        elsewhere=frozenset({"PolicyDocument", "Topics"}),  # as an attribute, topic by topic
        named=("TopicArn",),
        filled={"AttributeName": "Policy"},
    ),
    "AWS::SQS::Queue": Call(
        service="sqs",
        operation="CreateQueue",
        # Sent as attributes, each a text.
        elsewhere=frozenset({"KmsMasterKeyId", "MessageRetentionPeriod"}),
        named=("QueueName",),
    ),
    "AWS::SQS::QueuePolicy": Call(
        service="sqs",
        operation="SetQueueAttributes",
        elsewhere=frozenset({"PolicyDocument", "Queues"}),  # as an attribute, queue by queue
        named=("QueueUrl",),
        filled={"Attributes": {}},
    ),
    "AWS::Scheduler::Schedule": Call(service="scheduler", operation="CreateSchedule"),
    "AWS::Scheduler::ScheduleGroup": Call(service="scheduler", operation="CreateScheduleGroup"),
    "AWS::SecretsManager::Secret": Call(
        service="secretsmanager",
        operation="CreateSecret",
        elsewhere=frozenset({"GenerateSecretString"}),
    ),
}


def mismatches(kind: str, properties: Mapping[str, Any]) -> list[str]:
    """What the service would refuse in the call that creates this resource; ours has none."""
    if kind.startswith("Custom::"):
        return []
    call = CALLS[kind]
    shape = _operation(call.service, call.operation).input_shape
    assert shape is not None
    # CloudFormation turns tags into each service's own form.
    sent = {
        call.renamed.get(key, key): value
        for key, value in properties.items()
        if key != "Tags" and key not in call.elsewhere
    }
    sent |= dict.fromkeys(call.named, "made-up") | dict(call.filled)
    wrong: list[str] = []
    parameters = _fitted(sent, shape, wrong, kind)
    found = ParamValidator().validate(parameters, shape)
    return wrong + ([found.generate_report()] if found.has_errors() else [])


@cache
def _operation(service: str, operation: str) -> OperationModel:
    return botocore.session.get_session().get_service_model(service).operation_model(operation)


def _fitted(value: Any, shape: Shape, wrong: list[str], where: str) -> Any:
    """The value in the form of the shape; what has no place in it goes to `wrong`."""
    if is_token(value) and shape.type_name != "list":
        return 1 if shape.type_name in NUMBERS else TOKEN
    if shape.type_name == "structure" and isinstance(value, dict):
        return dict(_fitted_members(value, shape, wrong, where))
    if shape.type_name == "list":
        items = value if isinstance(value, list) else [value]
        return [_fitted(item, shape.member, wrong, f"{where}[]") for item in items]
    if shape.type_name == "map" and isinstance(value, dict):
        return {key: _fitted(v, shape.value, wrong, f"{where}.{key}") for key, v in value.items()}
    if shape.type_name in NUMBERS and isinstance(value, str) and value.isdigit():
        return int(value)
    if shape.type_name == "string" and isinstance(value, dict):
        return json.dumps(value)
    allowed = getattr(shape, "enum", None)
    if allowed and value not in allowed:
        wrong.append(f"{where} cannot be {value!r}, only {', '.join(allowed)}")
    return value


def _fitted_members(
    value: dict[str, Any], shape: Shape, wrong: list[str], where: str
) -> Iterator[tuple[str, Any]]:
    known = {name.lower(): name for name in shape.members}
    for key, below in value.items():
        name = known.get(NESTED.get(key, key).lower())
        if name is None:
            wrong.append(f"{where}.{key} is not known to {shape.name}")
        else:
            yield name, _fitted(below, shape.members[name], wrong, f"{where}.{key}")


def is_token(value: Any) -> bool:
    """Whether CloudFormation puts a value here only when it deploys."""
    return (
        isinstance(value, dict)
        and len(value) == 1
        and next(iter(value)).startswith(("Ref", "Fn::"))
    )
