"""What somebody might do to a resource of the deployment, and the rule of ours that notices."""

from __future__ import annotations

import base64

from tests.synth.edits import (
    Edit,
    becomes,
    clear_password,
    drop,
    forgets_offsets,
    is_lost,
    outlives_failure,
    policy,
    put,
)

DB, ROLE, KAFKA = "AWS::RDS::DBInstance", "AWS::IAM::Role", "AWS::MSK::Cluster"
GROUP, TOPIC = "AWS::EC2::SecurityGroup", "AWS::MSK::Topic"
CONNECTOR, PLUGIN = "AWS::KafkaConnect::Connector", "AWS::KafkaConnect::CustomPlugin"
SETTINGS = "ConnectorConfiguration"
JOB, SCHEDULE = "AWS::Glue::Job", "AWS::Scheduler::Schedule"
ALARM, TOPIC_POLICY = "AWS::CloudWatch::Alarm", "AWS::SNS::TopicPolicy"
WORKGROUP = "AWS::Athena::WorkGroup"
SERVICE, TASK, SHARDS = "AWS::ECS::Service", "AWS::ECS::TaskDefinition", "AWS::Kinesis::Stream"
CONTAINERS, KEYED = "ContainerDefinitions", "DeliveryStreamEncryptionConfigurationInput"
STATEMENT = ("PolicyDocument", "Statement")
PARAMETERS = "AWS::RDS::DBParameterGroup"
AUTHENTICATION = "ClientAuthentication"
STREAM, INTO = "AWS::KinesisFirehose::DeliveryStream", "IcebergDestinationConfiguration"
FROM, ON_S3 = "MSKSourceConfiguration", "S3Configuration"
BY_LINKS = ("ConnectivityInfo", "VpcConnectivity", AUTHENTICATION, "Sasl")
LINKED_BY_IAM = {"VpcConnectivity": {AUTHENTICATION: {"Sasl": {"Iam": {"Enabled": True}}}}}
OPEN = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "0.0.0.0/0"}
COMPACTED = base64.b64encode(b'{"cleanup.policy": "compact", "retention.ms": "1"}').decode()

FAULTS: dict[str, tuple[str, str, Edit]] = {
    # what somebody might do: (the rule that notices, the resource, the edit)
    "apostrophe in a security group's rule": (
        "names_fit_the_service", GROUP,
        put("SecurityGroupEgress", 0, "Description", value="Endpoints of AWS's services"),
    ),
    "security group's description of 256 characters": (
        "names_fit_the_service", GROUP, put("GroupDescription", value="x" * 256),
    ),
    "database with two hyphens": (
        "names_fit_the_service", DB, put("DBInstanceIdentifier", value="shop--source"),
    ),
    "cluster with an underscore": (
        "names_fit_the_service", KAFKA, put("ClusterName", value="shop_prod"),
    ),
    "job's description with a control character": (
        "names_fit_the_service", JOB, put("Description", value="Applies\x07changes"),
    ),
    "policy with a space": (
        "names_fit_the_service", ROLE, put("Policies", 0, "PolicyName", value="own rights"),
    ),
    "function with a dot": (
        "names_fit_the_service", "AWS::Lambda::Function",
        put("FunctionName", value="shop.redrive"),
    ),
    "name that nobody has looked up": (
        "names_fit_the_service", "AWS::SQS::Queue", put("QueueName", value="failed"),
    ),
    "cluster with ZooKeeper": (
        "lasting_kafka", KAFKA, put("KafkaVersion", value="3.9.x"),
    ),
    "metrics that are paid for": (
        "lasting_kafka", KAFKA, put("EnhancedMonitoring", value="PER_TOPIC_PER_BROKER"),
    ),
    "database of a minor version": (
        "safe_database", DB, put("EngineVersion", value="17.11"),
    ),
    "Glue connection without a zone": (
        "connections_name_their_zone", "AWS::Glue::Connection",
        drop("ConnectionInput", "PhysicalConnectionRequirements", "AvailabilityZone"),
    ),
    "queue bounded by count only": (
        "safe_connect", CONNECTOR, drop(SETTINGS, "max.queue.size.in.bytes"),
    ),
    "connector that a large record fails": (
        "safe_connect", CONNECTOR, put(SETTINGS, "transforms", value="epoch"),
    ),
    "connector that a logical message blocks": (
        "safe_connect", CONNECTOR, drop(SETTINGS, "message.prefix.exclude.list"),
    ),
    "connector that overrides its clients": (
        "safe_connect", CONNECTOR, put(SETTINGS, "producer.override.linger.ms", value="20"),
    ),
    "password in the file": ("no_clear_secret", DB, put("MasterUserPassword", value="tiger")),
    "password resolved": (
        "no_clear_secret", DB, put("MasterUserPassword", value="{{resolve:secretsmanager:a}}"),
    ),
    "secret's text": (
        "no_clear_secret", "AWS::SecretsManager::Secret", put("SecretString", value="tiger"),
    ),
    "managed policy": (
        "no_managed_policy", ROLE, put("ManagedPolicyArns", value=["arn:aws:iam::aws:policy/x"]),
    ),
    "whole service": ("no_wildcard", ROLE, policy(Action="glue:*", Resource="arn:aws:glue:x")),
    "every resource": ("no_wildcard", ROLE, policy(Action=["s3:GetObject"], Resource=["*"])),
    "policy of a hundred long names": (
        "roles_fit_iam", ROLE,
        policy(Action=["s3:GetObject"], Resource=[f"arn:aws:s3:::{n:0100}/*" for n in range(100)]),
    ),
    "all but": ("no_wildcard", ROLE, policy(NotAction="iam:*", Resource="arn:aws:glue:x")),
    "trusted by anybody": (
        "no_confused_deputy", ROLE, drop("AssumeRolePolicyDocument", "Statement", 0, "Condition"),
    ),
    "trusted by an account": (
        "no_confused_deputy", ROLE,
        put("AssumeRolePolicyDocument", "Statement", 0, "Principal", value={"AWS": "1"}),
    ),
    "endless logs": ("logs_end", "AWS::Logs::LogGroup", drop("RetentionInDays")),
    "logs without our key": ("logs_end", "AWS::Logs::LogGroup", drop("KmsKeyId")),
    "public database": ("nothing_public", DB, put("PubliclyAccessible", value=True)),
    "database of the default": ("nothing_public", DB, drop("PubliclyAccessible")),
    "way out": ("nothing_public", TOPIC, becomes("AWS::EC2::NatGateway", {})),
    "SSH from anywhere": ("nothing_public", GROUP, put("SecurityGroupIngress", value=[OPEN])),
    "SSH to anywhere": ("nothing_public", GROUP, put("SecurityGroupEgress", value=[OPEN])),
    "default egress": ("nothing_public", GROUP, drop("SecurityGroupEgress")),
    "database lost": ("kept_when_deleted", DB, is_lost),
    "topic lost": ("kept_when_deleted", TOPIC, is_lost),
    "topic of a failed creation": ("kept_when_deleted", TOPIC, outlives_failure),
    "no TLS": ("safe_database", PARAMETERS, put("Parameters", "rds.force_ssl", value="0")),
    "no replication": (
        "safe_database", PARAMETERS, drop("Parameters", "rds.logical_replication"),
    ),
    "boundless slot": (
        "safe_database", PARAMETERS, put("Parameters", "max_slot_wal_keep_size", value="-1"),
    ),
    "no backups": ("safe_database", DB, put("BackupRetentionPeriod", value=0)),
    "unencrypted disk": ("safe_database", DB, drop("StorageEncrypted")),
    "connectivity at creation": (
        "connectivity_comes_second", KAFKA,
        put("BrokerNodeGroupInfo", "ConnectivityInfo", value=LINKED_BY_IAM),
    ),
    "links without signing in": (
        "safe_kafka", KAFKA,
        put("BrokerNodeGroupInfo", *BY_LINKS, "Iam", value={"Enabled": False}),
    ),
    "links that admit nobody": (
        "connectivity_comes_second", "AWS::MSK::ClusterPolicy", put("ClusterArn", value="another"),
    ),
    "stream of another type": (
        "reads_all_there_is", STREAM, put("DeliveryStreamType", value="DirectPut"),
    ),
    "stream from now on": (
        "reads_all_there_is", STREAM, drop(FROM, "ReadFromTimestamp"),
    ),
    "stream from outside": (
        "reads_all_there_is", STREAM,
        put(FROM, "AuthenticationConfiguration", "Connectivity", value="PUBLIC"),
    ),
    "key of a stream that takes none": (
        "reads_all_there_is", STREAM, put(KEYED, value={"KeyType": "CUSTOMER_MANAGED_CMK"}),
    ),
    "stream of Firehose's own key": (
        "reads_all_there_is", STREAM, put(KEYED, "KeyType", value="AWS_OWNED_CMK"),
    ),
    "table described twice": (
        "iceberg_tables_alone", "AWS::Glue::Table", put("TableInput", value={"Name": "request"}),
    ),
    "table of another version": (
        "iceberg_tables_alone", "AWS::Glue::Table",
        put("OpenTableFormatInput", "IcebergInput", "Version", value="3"),
    ),
    "table lost": ("kept_when_deleted", "AWS::Glue::Table", is_lost),
    "shards lost": ("kept_when_deleted", SHARDS, is_lost),
    "shards in the clear": ("shards_are_ours", SHARDS, drop("StreamEncryption")),
    "shards of a day": ("shards_are_ours", SHARDS, drop("RetentionPeriodHours")),
    "server with an address": (
        "web_servers_are_private", SERVICE,
        put("NetworkConfiguration", "AwsvpcConfiguration", "AssignPublicIp", value="ENABLED"),
    ),
    "server with a shell": (
        "web_servers_are_private", SERVICE, put("EnableExecuteCommand", value=True),
    ),
    "server that does not come back": (
        "web_servers_are_private", SERVICE, drop("DeploymentConfiguration"),
    ),
    "image of a tag": (
        "containers_are_known", TASK, put(CONTAINERS, 0, "Image", value="nginx:latest"),
    ),
    "server that writes": (
        "containers_are_known", TASK, drop(CONTAINERS, 0, "ReadonlyRootFilesystem"),
    ),
    "router without a log": (
        "containers_are_known", TASK, drop(CONTAINERS, 1, "LogConfiguration"),
    ),
    "server of the host": (
        "containers_are_known", TASK, put(CONTAINERS, 0, "Privileged", value=True),
    ),
    "stream that updates": ("appends_only", STREAM, put(INTO, "AppendOnly", value=False)),
    "stream by keys": (
        "appends_only", STREAM,
        put(INTO, "DestinationTableConfigurationList", 0, "UniqueKeys", value=["id"]),
    ),
    "tables made by Firehose": (
        "appends_only", STREAM, put(INTO, "TableCreationConfiguration", "Enabled", value=True),
    ),
    "columns made by Firehose": (
        "appends_only", STREAM, drop(INTO, "SchemaEvolutionConfiguration"),
    ),
    "function that is tried once": (
        "keeps_what_fails", STREAM,
        put(INTO, "ProcessingConfiguration", "Processors", 0, "Parameters", 1,
            value={"ParameterName": "RoleArn", "ParameterValue": "arn:x"}),
    ),
    "failures anywhere": (
        "keeps_what_fails", STREAM, drop(INTO, ON_S3, "ErrorOutputPrefix"),
    ),
    "failures of all kinds together": (
        "keeps_what_fails", STREAM, put(INTO, ON_S3, "ErrorOutputPrefix", value="failed/"),
    ),
    "backup of the default": ("keeps_what_fails", STREAM, drop(INTO, "s3BackupMode")),
    "backup of everything": (
        "keeps_what_fails", STREAM, put(INTO, "s3BackupMode", value="AllData"),
    ),
    "tries of the default": ("keeps_what_fails", STREAM, drop(INTO, "RetryOptions")),
    "stream without a log": ("keeps_what_fails", STREAM, drop(INTO, "CloudWatchLoggingOptions")),
    "log without a stream": (
        "keeps_what_fails", STREAM, drop(INTO, "CloudWatchLoggingOptions", "LogStreamName"),
    ),
    "trusted by anybody's resource": (
        "no_confused_deputy", ROLE,
        drop("AssumeRolePolicyDocument", "Statement", 0, "Condition", "ArnLike"),
    ),
    "anonymous clients": (
        "safe_kafka", KAFKA, put(AUTHENTICATION, "Unauthenticated", "Enabled", value=True),
    ),
    "SCRAM clients": (
        "safe_kafka", KAFKA, put(AUTHENTICATION, "Sasl", "Scram", "Enabled", value=True),
    ),
    "plaintext": (
        "safe_kafka", KAFKA,
        put("EncryptionInfo", "EncryptionInTransit", "ClientBroker", value="TLS_PLAINTEXT"),
    ),
    "topics make themselves": (
        "known_settings", "AWS::MSK::Configuration",
        put("ServerProperties", value="auto.create.topics.enable=true"),
    ),
    "compacted topic": ("topics_as_locally", TOPIC, put("Configs", value=COMPACTED)),
    "topic of two partitions": ("topics_as_locally", TOPIC, put("PartitionCount", value=2)),
    "topic on one broker": ("topics_as_locally", TOPIC, put("ReplicationFactor", value=1)),
    "offsets that are deleted": ("topics_as_locally", TOPIC, forgets_offsets),
    "password of the connector": (
        "safe_connect", CONNECTOR, put(SETTINGS, "database.password", value="tiger"),
    ),
    "password resolved into the connector": (
        "no_clear_secret", CONNECTOR,
        put(SETTINGS, "database.user", value="{{resolve:secretsmanager:a}}"),
    ),
    "mask of Debezium's": (
        "safe_connect", CONNECTOR,
        put(SETTINGS, "column.mask.hash.v2.SHA-256.with.salt.pepper", value="a.b"),
    ),
    "salt in the clear": (
        "safe_connect", CONNECTOR, put(SETTINGS, "cdclake.mask.salt.secret", value="pepper"),
    ),
    "source that is anybody": (
        "safe_connect", CONNECTOR, put(SETTINGS, "database.sslmode", value="require"),
    ),
    "restarts by the provider": (
        "safe_connect", CONNECTOR, drop(SETTINGS, "config.action.reload"),
    ),
    "two workers": (
        "safe_connect", CONNECTOR,
        put("Capacity", "ProvisionedCapacity", "WorkerCount", value=2),
    ),
    "autoscaled workers": (
        "safe_connect", CONNECTOR,
        put("Capacity", value={"AutoScaling": {"MaxWorkerCount": 2}}),
    ),
    "connector that does not sign in": (
        "safe_connect", CONNECTOR,
        put("KafkaClusterClientAuthentication", "AuthenticationType", value="NONE"),
    ),
    "connector in plaintext": (
        "safe_connect", CONNECTOR,
        put("KafkaClusterEncryptionInTransit", "EncryptionType", value="PLAINTEXT"),
    ),
    "sink's clients without a login": (
        "safe_connect", CONNECTOR, drop(SETTINGS, "iceberg.kafka.sasl.mechanism"),
    ),
    "sink's clients without TLS": (
        "safe_connect", CONNECTOR, drop(SETTINGS, "iceberg.kafka.security.protocol"),
    ),
    "sink's password in the clear": ("no_clear_secret", CONNECTOR, clear_password),
    "connector without a log": ("safe_connect", CONNECTOR, drop("LogDelivery")),
    "offsets of one connector only": (
        "safe_connect", "AWS::KafkaConnect::WorkerConfiguration",
        put("PropertiesFileContent", value="config.providers=secretsmanager"),
    ),
    "plugin of a fixed name": ("named_by_content", PLUGIN, put("Name", value="debezium")),
    "connector named by a hash": (
        "named_by_content", CONNECTOR, put("ConnectorName", value="shop-0a1b2c3d4e5f"),
    ),
    "bucket lost": ("kept_when_deleted", "AWS::S3::Bucket", is_lost),
    "public bucket": (
        "safe_bucket", "AWS::S3::Bucket",
        put("PublicAccessBlockConfiguration", "BlockPublicPolicy", value=False),
    ),
    "bucket of S3's own key": ("safe_bucket", "AWS::S3::Bucket", drop("BucketEncryption")),
    "growing bucket": ("safe_bucket", "AWS::S3::Bucket", drop("LifecycleConfiguration")),
    "archive in a bucket": (
        "safe_bucket", "AWS::S3::Bucket",
        put(
            "LifecycleConfiguration", "Rules", 0, "Transitions",
            value=[{"StorageClass": "DEEP_ARCHIVE", "TransitionInDays": 90}],
        ),
    ),
    "bucket without TLS": (
        "safe_bucket", "AWS::S3::BucketPolicy",
        drop("PolicyDocument", "Statement", 0, "Condition"),
    ),
    "metrics of every namespace": (
        "no_wildcard", ROLE, policy(Action="cloudwatch:PutMetricData", Resource="*"),
    ),
    "two runs": ("one_run_at_a_time", JOB, put("ExecutionProperty", "MaxConcurrentRuns", value=2)),
    "runs of the default": ("one_run_at_a_time", JOB, drop("ExecutionProperty")),
    "retries": ("one_run_at_a_time", JOB, put("MaxRetries", value=3)),
    "endless run": ("one_run_at_a_time", JOB, drop("Timeout")),
    "unencrypted job": ("one_run_at_a_time", JOB, drop("SecurityConfiguration")),
    "job outside": ("one_run_at_a_time", JOB, drop("Connections")),
    "another Glue": ("one_run_at_a_time", JOB, put("GlueVersion", value="5.0")),
    "bookmarks": ("what_runs_is_known", JOB, drop("DefaultArguments", "--job-bookmark-option")),
    "unseen job": (
        "what_runs_is_known", JOB, drop("DefaultArguments", "--enable-observability-metrics"),
    ),
    "script of any content": (
        "what_runs_is_known", JOB, put("Command", "ScriptLocation", value="s3://b/deployed/x.py"),
    ),
    "schedule without a queue": (
        "schedules_fail_loudly", SCHEDULE, drop("Target", "DeadLetterConfig"),
    ),
    "schedule that tries all day": (
        "schedules_fail_loudly", SCHEDULE, drop("Target", "RetryPolicy"),
    ),
    "schedule off": ("schedules_fail_loudly", SCHEDULE, put("State", value="DISABLED")),
    "queue of SQS's own key": (
        "schedules_fail_loudly", "AWS::SQS::Queue", drop("KmsMasterKeyId"),
    ),
    "custom resource that is awaited for an hour": (
        "answers_are_awaited_briefly", "Custom::CdclakeFiles", drop("ServiceTimeout"),
    ),
    "function for anybody": (
        "called_by_ours_only", "AWS::Lambda::Permission", drop("SourceAccount"),
    ),
    "function's own logs": (
        "called_by_ours_only", "AWS::Lambda::Function", drop("LoggingConfig"),
    ),
    "settings of one's own": (
        "queries_are_bounded", WORKGROUP,
        put("WorkGroupConfiguration", "EnforceWorkGroupConfiguration", value=False),
    ),
    "scan of any price": (
        "queries_are_bounded", WORKGROUP,
        drop("WorkGroupConfiguration", "BytesScannedCutoffPerQuery"),
    ),
    "results of S3's own key": (
        "queries_are_bounded", WORKGROUP,
        drop("WorkGroupConfiguration", "ResultConfiguration", "EncryptionConfiguration"),
    ),
    "query for everybody": ("queries_are_bounded", "AWS::Athena::NamedQuery", drop("WorkGroup")),
    "alarm that nobody hears": ("alarms_lead_somewhere", ALARM, drop("AlarmActions")),
    "alarm that never ends": ("alarms_lead_somewhere", ALARM, drop("OKActions")),
    "alarm that is off": ("alarms_lead_somewhere", ALARM, put("ActionsEnabled", value=False)),
    "alarm without a runbook": (
        "alarms_lead_somewhere", ALARM, put("AlarmDescription", value="it is broken"),
    ),
    "runbook of another alarm": (
        "alarms_lead_somewhere", ALARM,
        put("AlarmDescription", value="late. Runbook: cdclake runbook any"),
    ),
    "silence of any meaning": ("alarms_lead_somewhere", ALARM, drop("TreatMissingData")),
    "topic of SNS's own key": ("topics_are_for_alarms", "AWS::SNS::Topic", drop("KmsMasterKeyId")),
    "topic for anybody's alarms": (
        "topics_are_for_alarms", TOPIC_POLICY, drop(*STATEMENT, 0, "Condition"),
    ),
    "topic without TLS": ("topics_are_for_alarms", TOPIC_POLICY, drop(*STATEMENT, 1)),
    "key for anybody's alarms": (
        "keys_are_for_this_account", "AWS::KMS::Key",
        put("KeyPolicy", "Statement", 2, "Condition", value={}),
    ),
    "bucket without a policy": (
        "every_bucket_has_a_policy", "AWS::S3::BucketPolicy", put("Bucket", value="another"),
    ),
}  # fmt: skip
