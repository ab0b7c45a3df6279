"""Names and descriptions fit the service that checks them.

CloudFormation's schemas and botocore's models leave most of these constraints out, so that linters
pass what the service then refuses. The constraints are those of each service's API reference; where
a service documents a length only, its characters are limited to printable ASCII here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.synth.deployments import Template
from tests.synth.rules.reading import walk

ASCII = "[ -~]"
# EC2's own words: "Valid descriptions are strings less than 256 characters from the following set".
EC2_TEXT = r"[a-zA-Z0-9. _\-:/()#,@\[\]+=&;{}!$*]{0,255}"
GLUE_NAME = "[\u0020-\ud7ff\ue000-\ufffd\t]{1,255}"
GLUE_TEXT = "[\u0020-\ud7ff\ue000-\ufffd\r\n\t]{0,2048}"
MSK_NAME = "[0-9A-Za-z][0-9A-Za-z-]{0,63}"
CONNECT_NAME, CONNECT_TEXT = "[0-9A-Za-z-]{1,128}", f"{ASCII}{{0,1024}}"
ECS_NAME, SCHEDULER_NAME = "[A-Za-z0-9_-]{1,255}", "[0-9a-zA-Z_.-]{1,64}"
ATHENA_TEXT = f"{ASCII}{{1,1024}}"

# (resource type, path of the property): the expression that the whole value has to match
ALLOWED: dict[tuple[str, str], str] = {
    ("AWS::ApplicationAutoScaling::ScalingPolicy", "PolicyName"): "[ -~]{1,256}",
    ("AWS::Athena::NamedQuery", "Description"): ATHENA_TEXT,
    ("AWS::Athena::NamedQuery", "Name"): f"{ASCII}{{1,128}}",
    ("AWS::Athena::WorkGroup", "Description"): ATHENA_TEXT,
    ("AWS::Athena::WorkGroup", "Name"): "[a-zA-Z0-9._-]{1,128}",
    ("AWS::CloudWatch::Alarm", "AlarmDescription"): f"{ASCII}{{0,1024}}",
    ("AWS::CloudWatch::Alarm", "AlarmName"): f"{ASCII}{{1,255}}",
    ("AWS::CloudWatch::Dashboard", "DashboardName"): "[A-Za-z0-9_-]{1,255}",
    ("AWS::EC2::SecurityGroup", "GroupDescription"): EC2_TEXT,
    ("AWS::EC2::SecurityGroup", "SecurityGroupEgress.Description"): EC2_TEXT,
    ("AWS::EC2::SecurityGroup", "SecurityGroupIngress.Description"): EC2_TEXT,
    ("AWS::EC2::SecurityGroupEgress", "Description"): EC2_TEXT,
    ("AWS::EC2::SecurityGroupIngress", "Description"): EC2_TEXT,
    ("AWS::ECS::Cluster", "ClusterName"): ECS_NAME,
    ("AWS::ECS::Service", "ServiceName"): ECS_NAME,
    ("AWS::ECS::TaskDefinition", "ContainerDefinitions.Name"): ECS_NAME,
    ("AWS::ECS::TaskDefinition", "Volumes.Name"): ECS_NAME,
    ("AWS::Events::Rule", "Description"): f"{ASCII}{{0,512}}",
    ("AWS::Glue::Connection", "ConnectionInput.Description"): GLUE_TEXT,
    ("AWS::Glue::Connection", "ConnectionInput.Name"): GLUE_NAME,
    ("AWS::Glue::Database", "DatabaseInput.Description"): GLUE_TEXT,
    ("AWS::Glue::Database", "DatabaseInput.Name"): GLUE_NAME,
    ("AWS::Glue::Job", "Description"): GLUE_TEXT,
    ("AWS::Glue::Job", "Name"): GLUE_NAME,
    ("AWS::Glue::SecurityConfiguration", "Name"): GLUE_NAME,
    ("AWS::Glue::Table", "Name"): GLUE_NAME,
    ("AWS::Glue::Table", "TableInput.Name"): GLUE_NAME,
    ("AWS::IAM::Role", "Policies.PolicyName"): r"[A-Za-z0-9_+=,.@-]{1,128}",
    ("AWS::KMS::Alias", "AliasName"): "alias/[a-zA-Z0-9/_-]{1,250}",
    ("AWS::KMS::Key", "Description"): f"{ASCII}{{0,8192}}",
    ("AWS::KafkaConnect::Connector", "ConnectorName"): CONNECT_NAME,
    ("AWS::Glue::Registry", "Description"): f"{ASCII}{{0,2048}}",
    ("AWS::Glue::Registry", "Name"): "[a-zA-Z0-9_$#.-]{1,255}",
    ("AWS::KafkaConnect::CustomPlugin", "Description"): CONNECT_TEXT,
    ("AWS::KafkaConnect::CustomPlugin", "Name"): CONNECT_NAME,
    ("AWS::KafkaConnect::WorkerConfiguration", "Description"): CONNECT_TEXT,
    ("AWS::KafkaConnect::WorkerConfiguration", "Name"): CONNECT_NAME,
    ("AWS::Kinesis::Stream", "Name"): "[a-zA-Z0-9_.-]{1,128}",
    ("AWS::KinesisFirehose::DeliveryStream", "DeliveryStreamName"): "[a-zA-Z0-9_.-]{1,64}",
    ("AWS::Lambda::Function", "Description"): f"{ASCII}{{0,256}}",
    ("AWS::Lambda::Function", "FunctionName"): "[a-zA-Z0-9_-]{1,64}",
    ("AWS::Logs::LogGroup", "LogGroupName"): "[.a-zA-Z0-9_/#-]{1,512}",
    ("AWS::Logs::LogStream", "LogStreamName"): "[^:*]{1,512}",
    ("AWS::MSK::Cluster", "ClusterName"): MSK_NAME,
    ("AWS::MSK::Configuration", "Description"): f"{ASCII}{{0,1024}}",
    ("AWS::MSK::Configuration", "Name"): MSK_NAME,
    ("AWS::MSK::Topic", "TopicName"): "[a-zA-Z0-9._-]{1,249}",
    ("AWS::RDS::DBCluster", "DBClusterIdentifier"): "(?!.*--)[A-Za-z][A-Za-z0-9-]{0,62}(?<!-)",
    ("AWS::RDS::DBCluster", "DatabaseName"): "[A-Za-z][A-Za-z0-9_]{0,62}",
    ("AWS::RDS::DBCluster", "MasterUsername"): "[A-Za-z][A-Za-z0-9_]{0,15}",
    ("AWS::RDS::DBClusterParameterGroup", "Description"): f"{ASCII}{{1,255}}",
    ("AWS::RDS::DBInstance", "DBInstanceIdentifier"): "(?!.*--)[A-Za-z][A-Za-z0-9-]{0,62}(?<!-)",
    ("AWS::RDS::DBInstance", "DBName"): "[A-Za-z][A-Za-z0-9_]{0,62}",
    ("AWS::RDS::DBInstance", "MasterUsername"): "[A-Za-z][A-Za-z0-9_]{0,62}",
    ("AWS::RDS::DBParameterGroup", "Description"): f"{ASCII}{{1,255}}",
    ("AWS::RDS::DBSubnetGroup", "DBSubnetGroupDescription"): f"{ASCII}{{1,255}}",
    ("AWS::SNS::Topic", "TopicName"): "[A-Za-z0-9_-]{1,256}",
    ("AWS::Scheduler::Schedule", "Name"): SCHEDULER_NAME,
    ("AWS::Scheduler::ScheduleGroup", "Name"): SCHEDULER_NAME,
    ("AWS::SecretsManager::Secret", "Description"): f"{ASCII}{{0,2048}}",
    ("AWS::SecretsManager::Secret", "Name"): "[A-Za-z0-9/_+=.@-]{1,512}",
}
# Values of the service's own, or names that another resource declares and is checked for.
REFERENCES = {
    "AWS::CloudWatch::Alarm": ("Dimensions.Name", "MetricName", "Metrics.Id"),
    "AWS::ECS::Cluster": ("ClusterSettings.Name",),
    "AWS::ECS::TaskDefinition": ("DependsOn.ContainerName", "Environment.Name", "Options.Name"),
    "AWS::Events::Rule": ("EventPattern.detail.jobName",),
    "AWS::Glue::Job": ("Command.Name",),
    "AWS::Glue::Table": ("DatabaseName", "Fields.Name"),
    "AWS::Glue::TableOptimizer": ("DatabaseName", "TableName"),
    "AWS::LakeFormation::PrincipalPermissions": ("DatabaseName", "Database.Name", "Table.Name"),
    "AWS::KinesisFirehose::DeliveryStream": (
        "DestinationDatabaseName", "DestinationTableName", "LogGroupName", "LogStreamName",
        "ParameterName", "TopicName",
    ),
    "AWS::Logs::LogStream": ("LogGroupName",),
    "AWS::Logs::MetricFilter": ("LogGroupName", "MetricName"),
}  # fmt: skip
NAMED = re.compile(r"([Nn]ame|Description|Identifier)$")


def names_fit_the_service(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Refuse a name or description that its service refuses, and one that has no entry above."""
    if not kind.startswith("AWS::"):
        return
    for path, value in walk(properties):
        where = ".".join(path)
        if not isinstance(value, str) or not path or not NAMED.search(path[-1]):
            continue
        # Settings of Debezium's, which its own rules check.
        if path[0] == "ConnectorConfiguration" or where.endswith(REFERENCES.get(kind, ())):
            continue
        allowed = ALLOWED.get((kind, where))
        if allowed is None:
            yield f"{kind} {where} has no entry in the table of what the service takes"
        elif re.fullmatch(allowed, value) is None:
            yield f"{kind} {where} is {value!r}, and the service takes {allowed}"
