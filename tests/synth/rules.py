"""Our own rules over the templates: what no linter sees, each with the reason it is there.

A rule takes one resource (its type, its properties, the whole of it) and yields what is wrong.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.synth.deployments import Template

Rule = Callable[[str, dict[str, Any], Template], Iterator[str]]

HOLDS_DATA = {
    "AWS::Glue::Database",
    "AWS::KMS::Key",
    "AWS::MSK::Cluster",
    "AWS::MSK::Topic",
    "AWS::RDS::DBInstance",
    "AWS::S3::Bucket",
}
# These services send no word of the caller's account when they take on a role.
TRUSTED_WITHOUT_SOURCE = {"lambda.amazonaws.com"}
LOOKED_AT = (
    "NetworkInterfaces", "RouteTables", "SecurityGroups", "Subnets", "VpcAttribute",
    "VpcEndpoints", "Vpcs",
)  # fmt: skip
# IAM knows no resources for these (its Service Authorization Reference); what bounds one instead.
WITHOUT_RESOURCES = {
    "cloudwatch:PutMetricData": "cloudwatch:namespace",
    **{f"ec2:Describe{what}": "" for what in LOOKED_AT},
}
SECRET_PROPERTY = re.compile(r"password|passphrase|secretstring$", re.IGNORECASE)
NOT_SECRET = {"ManageMasterUserPassword", "GenerateSecretString", "PasswordLength"}
NOT_SECRET |= {"database.password"}  # of a connector: a reference, at which its own rule looks
HTTPS = 443
OFFSETS = "__cdclake-offsets."
REFERENCE = re.compile(r"[$][{]secretsmanager:[A-Za-z0-9/_-]+:[a-z]+[}]")


def walk(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value below, with the keys that lead to it."""
    yield path, value
    items = value.items() if isinstance(value, dict) else ()
    for key, below in items:
        yield from walk(below, (*path, key))
    for below in value if isinstance(value, list) else ():
        yield from walk(below, path)


def listed(value: Any) -> list[Any]:
    """IAM takes one value for a list of one."""
    return value if isinstance(value, list) else [value]


def statements(properties: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every statement of every policy in a resource."""
    for path, value in walk(properties):
        if path and path[-1] == "Statement" and isinstance(value, dict):
            yield value


def no_clear_secret(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """A template is read by everybody who may list stacks."""
    for path, value in walk(properties):
        if isinstance(value, str) and "{{resolve:" in value:
            yield f"{'.'.join(path)} resolves a secret into {kind}, where it can be read"
        named = path and path[-1] not in NOT_SECRET and SECRET_PROPERTY.search(path[-1])
        if named and value and not isinstance(value, dict):
            yield f"{'.'.join(path)} holds a secret in the clear"


def no_managed_policy(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """AWS widens its managed policies as it likes; ours say what they say."""
    if properties.get("ManagedPolicyArns"):
        yield f"{kind} has a managed policy"


def no_wildcard(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """No service as a whole, and no resource at all: but in a key's policy `*` is the key."""
    for statement in statements(properties):
        if statement["Effect"] != "Allow":
            continue
        actions = [str(action) for action in listed(statement.get("Action", []))]
        by_account = "AWS" in statement.get("Principal", {}) and kind == "AWS::KMS::Key"
        for action in actions:
            if action == "*" or (action.endswith(":*") and not by_account):
                yield f"{kind} allows {action}"
        if "NotAction" in statement or "NotResource" in statement:
            yield f"{kind} allows everything but something"
        condition = json.dumps(statement.get("Condition", {}))
        bounded = all(WITHOUT_RESOURCES.get(action, "?") in condition for action in actions)
        if kind != "AWS::KMS::Key" and "*" in listed(statement.get("Resource", "")) and not bounded:
            yield f"{kind} allows {', '.join(actions)} on everything"


def no_confused_deputy(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """A service takes on our role for this account's resource only."""
    if kind != "AWS::IAM::Role":
        return
    for statement in listed(properties["AssumeRolePolicyDocument"]["Statement"]):
        principal = statement["Principal"]
        if set(principal) != {"Service"}:
            yield f"{kind} is taken on by {sorted(principal)}, not by a service"
        elif not set(listed(principal["Service"])) <= TRUSTED_WITHOUT_SOURCE:
            condition = json.dumps(statement.get("Condition", {}))
            for key in ("aws:SourceAccount", "aws:SourceArn"):
                if key not in condition:
                    yield f"{kind} is trusted without {key}"


def logs_end(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Logs without an end are paid for without an end."""
    if kind == "AWS::Logs::LogGroup":
        for needed in ("RetentionInDays", "KmsKeyId"):
            if needed not in properties:
                yield f"{kind} has no {needed}"


def nothing_public(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Nothing is reached from outside, and only AWS's services are reached from inside."""
    if kind in ("AWS::EC2::InternetGateway", "AWS::EC2::NatGateway", "AWS::EC2::EIP"):
        yield f"{kind} leads to the internet"
    for flag in ("PubliclyAccessible", "MapPublicIpOnLaunch"):
        if properties.get(flag, False) is not False:
            yield f"{kind} has {flag}"
    if kind == "AWS::RDS::DBInstance" and "PubliclyAccessible" not in properties:
        yield f"{kind} does not say that it is private"
    if kind == "AWS::EC2::SecurityGroup" and not properties.get("SecurityGroupEgress"):
        yield f"{kind} may connect to everything: EC2's default without a rule"
    yield from _open_rules(kind, properties)


def _open_rules(kind: str, properties: dict[str, Any]) -> Iterator[str]:
    ingress = list(properties.get("SecurityGroupIngress", []))
    egress = list(properties.get("SecurityGroupEgress", []))
    ingress += [properties] if kind == "AWS::EC2::SecurityGroupIngress" else []
    egress += [properties] if kind == "AWS::EC2::SecurityGroupEgress" else []
    for rule in ingress:
        if "SourceSecurityGroupId" not in rule:
            yield f"{kind} admits addresses, not a group"
    for rule in egress:
        everywhere = rule.get("CidrIp") == "0.0.0.0/0" or "CidrIpv6" in rule
        if everywhere and (rule.get("FromPort"), rule.get("ToPort")) != (HTTPS, HTTPS):
            yield f"{kind} may connect to everything on other ports than {HTTPS}"


def kept_when_deleted(kind: str, properties: dict[str, Any], resource: Template) -> Iterator[str]:
    """What holds data outlives its stack; only `protect: false` says otherwise."""
    del properties
    if kind in HOLDS_DATA:
        for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
            if resource.get(policy) not in ("Retain", "Snapshot"):
                yield f"{kind} is lost by {policy}"


def safe_database(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """TLS, logical replication, and a slot that is given up before the disk is full."""
    if kind == "AWS::RDS::DBParameterGroup":
        parameters = properties["Parameters"]
        for name in ("rds.force_ssl", "rds.logical_replication"):
            if parameters.get(name) != "1":
                yield f"{kind} lacks {name}"
        if int(parameters.get("max_slot_wal_keep_size", -1)) <= 0:
            yield f"{kind} lets a slot fill the disk"
    if kind == "AWS::RDS::DBInstance":
        for flag in ("StorageEncrypted", "ManageMasterUserPassword", "CopyTagsToSnapshot"):
            if properties.get(flag) is not True:
                yield f"{kind} lacks {flag}"
        if properties.get("BackupRetentionPeriod", 0) < 1:
            yield f"{kind} has no backups"


def safe_kafka(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """IAM over TLS only; MSK refuses connectivity settings at creation; no topic makes itself."""
    if kind == "AWS::MSK::Cluster":
        if "ConnectivityInfo" in properties["BrokerNodeGroupInfo"]:
            yield f"{kind} sets connectivity, which is refused when a cluster is created"
        ways = {
            path[0] if path[0] != "Sasl" else path[1]
            for path, value in walk(properties.get("ClientAuthentication", {}))
            if path and path[-1] == "Enabled" and value is True
        }
        if ways != {"Iam"}:
            yield f"{kind} lets clients in by {sorted(ways)}"
        encryption = properties.get("EncryptionInfo", {})
        if encryption.get("EncryptionInTransit") != {"ClientBroker": "TLS", "InCluster": True}:
            yield f"{kind} takes unencrypted connections"
        if "EncryptionAtRest" not in encryption:
            yield f"{kind} is not encrypted with our key"
        if "ConfigurationInfo" not in properties:
            yield f"{kind} has MSK's own settings"
    if kind == "AWS::MSK::Configuration":
        lines = str(properties["ServerProperties"]).splitlines()
        for line in ("auto.create.topics.enable=false", "unclean.leader.election.enable=false"):
            if line not in lines:
                yield f"{kind} lacks {line}"


def topics_as_locally(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Kafka must keep a record for longer than the stream may be away, and take large ones."""
    if kind != "AWS::MSK::Topic":
        return
    settings = json.loads(base64.b64decode(properties.get("Configs", "e30=")))
    if properties["PartitionCount"] != 1:
        yield f"{kind} parts a table's events"
    if properties["ReplicationFactor"] < 2:
        yield f"{kind} stands on one broker"
    if properties["TopicName"].startswith(OFFSETS):
        if settings.get("cleanup.policy") != "compact":
            yield f"{kind} forgets how far the connector has read"
    else:
        for name in ("retention.ms", "max.message.bytes"):
            if int(settings.get(name, 0)) <= 0:
                yield f"{kind} lacks {name}"
        if settings.get("cleanup.policy") != "delete":
            yield f"{kind} forgets changes"


def safe_connect(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """One worker that signs in by IAM over TLS, logs, and holds no password, only where it is."""
    if kind == "AWS::KafkaConnect::Connector":
        capacity = properties["Capacity"].get("ProvisionedCapacity", {})
        if capacity.get("WorkerCount") != 1:
            yield f"{kind} has not one worker: a slot has one reader"
        if properties["KafkaClusterClientAuthentication"]["AuthenticationType"] != "IAM":
            yield f"{kind} does not sign in"
        if properties["KafkaClusterEncryptionInTransit"]["EncryptionType"] != "TLS":
            yield f"{kind} is not encrypted on its way"
        if '"Enabled": true' not in json.dumps(properties.get("LogDelivery", {})):
            yield f"{kind} does not log"
        yield from _source_is_safe(kind, properties["ConnectorConfiguration"])
    if kind == "AWS::KafkaConnect::WorkerConfiguration":
        text = json.dumps(properties["PropertiesFileContent"])
        for setting in ("offset.storage.topic=", "config.providers="):
            if setting not in text:
                yield f"{kind} lacks {setting}"


def _source_is_safe(kind: str, settings: dict[str, Any]) -> Iterator[str]:
    if not REFERENCE.fullmatch(str(settings.get("database.password"))):
        yield f"{kind} has a password, or none"
    if settings.get("database.sslmode") != "verify-full":
        yield f"{kind} does not check whom it talks to"
    if settings.get("config.action.reload") != "none":
        yield f"{kind} is restarted by its provider of secrets"
    if any("salt" in name for name in settings):
        yield f"{kind} shows the salt of a mask"


def named_by_content(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """What can only be set at creation is made anew before it goes, and needs another name."""
    fixed = {"AWS::KafkaConnect::CustomPlugin", "AWS::KafkaConnect::WorkerConfiguration"}
    if kind in fixed and not re.search(r"-[0-9a-f]{12}$", properties["Name"]):
        yield f"{kind} is not named by its content"
    if re.search(r"[0-9a-f]{10}", properties.get("ConnectorName", "")):
        yield f"{kind} is named by its content: by its name Connect keeps its offsets"


def safe_bucket(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Private, encrypted, over TLS, and of what is deleted nothing stays for ever."""
    if kind == "AWS::S3::Bucket":
        blocked = properties.get("PublicAccessBlockConfiguration", {})
        if len(blocked) != 4 or not all(value is True for value in blocked.values()):
            yield f"{kind} may become public"
        if "BucketEncryption" not in properties:
            yield f"{kind} is not encrypted by our choice"
        rules = properties.get("LifecycleConfiguration", {}).get("Rules", [])
        kept = json.dumps(rules)
        if "AbortIncompleteMultipartUpload" not in kept:
            yield f"{kind} keeps uploads that nobody ended"
        versions = "VersioningConfiguration" in properties
        if ("NoncurrentVersionExpiration" if versions else "ExpirationInDays") not in kept:
            yield f"{kind} grows for ever"
    if kind == "AWS::S3::BucketPolicy":
        denied = [s for s in statements(properties) if s["Effect"] == "Deny"]
        if not any("aws:SecureTransport" in json.dumps(s.get("Condition")) for s in denied):
            yield f"{kind} lets clients in without TLS"


def one_run_at_a_time(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Two runs of a job would write the same tables; one without an end is paid without an end."""
    if kind == "AWS::Glue::Job":
        if properties.get("ExecutionProperty", {}).get("MaxConcurrentRuns") != 1:
            yield f"{kind} may run twice at once"
        if properties.get("MaxRetries", 0) != 0:
            yield f"{kind} is tried again by two sides"
        for needed in ("Timeout", "SecurityConfiguration", "Connections", "NumberOfWorkers"):
            if needed not in properties:
                yield f"{kind} has no {needed}"
        if properties.get("GlueVersion") != "5.1":
            yield f"{kind} is not of the version that runs locally"


def what_runs_is_known(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """A run shows metrics, is of code that its name tells, and keeps no place beside the stamps."""
    if kind != "AWS::Glue::Job":
        return
    arguments = properties.get("DefaultArguments", {})
    if arguments.get("--enable-observability-metrics") != "true":
        yield f"{kind} shows no metrics"
    if arguments.get("--job-bookmark-option") != "job-bookmark-disable":
        yield f"{kind} keeps bookmarks"
    script = properties["Command"]["ScriptLocation"]
    for file in (script, arguments.get("--extra-py-files"), arguments.get("--plan")):
        if not re.search(r"/deployed/[a-z_-]+-[0-9a-f]{16}[.][a-z]+", json.dumps(file)):
            yield f"{kind} reads a file whose name does not follow its content"


def schedules_fail_loudly(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """A call that failed is tried again for a while, and then lies where it is found."""
    if kind == "AWS::Scheduler::Schedule":
        target = properties["Target"]
        if "DeadLetterConfig" not in target:
            yield f"{kind} has no dead-letter queue"
        retries = target.get("RetryPolicy", {})
        if retries.get("MaximumEventAgeInSeconds", 86400) > 3600:
            yield f"{kind} tries for longer than the next start is away"
        if properties.get("State", "ENABLED") != "ENABLED" or "KmsKeyArn" not in properties:
            yield f"{kind} is off, or not encrypted with our key"
    if kind == "AWS::SQS::Queue" and "KmsMasterKeyId" not in properties:
        yield f"{kind} is not encrypted with our key"


def called_by_ours_only(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """A service calls our function for this account's resource only."""
    if kind == "AWS::Lambda::Permission":
        for needed in ("SourceAccount", "SourceArn"):
            if needed not in properties:
                yield f"{kind} lets the service call for anybody, without {needed}"
    if kind == "AWS::Lambda::Function" and "LoggingConfig" not in properties:
        yield f"{kind} makes its own log group, without an end"


def every_bucket_has_a_policy(template: Template) -> Iterator[str]:
    """The rule above sees policies only where there are some."""
    found = template["Resources"].items()
    policies = json.dumps([r for _, r in found if r["Type"] == "AWS::S3::BucketPolicy"])
    for name, resource in found:
        if (
            resource["Type"] == "AWS::S3::Bucket"
            and f'"Bucket": {{"Ref": "{name}"}}' not in policies
        ):
            yield f"{name}: AWS::S3::Bucket has no policy"


RULES: tuple[Rule, ...] = (
    no_clear_secret,
    no_managed_policy,
    no_wildcard,
    no_confused_deputy,
    logs_end,
    nothing_public,
    kept_when_deleted,
    safe_database,
    safe_kafka,
    topics_as_locally,
    safe_connect,
    named_by_content,
    safe_bucket,
    one_run_at_a_time,
    what_runs_is_known,
    schedules_fail_loudly,
    called_by_ours_only,
)


def broken_rules(templates: dict[str, Template]) -> list[str]:
    """What is wrong, as `rule: stack/resource: what`."""
    without = [
        f"{every_bucket_has_a_policy.__name__}: {stack}/{what}"
        for stack, template in templates.items()
        for what in every_bucket_has_a_policy(template)
    ]
    return without + [
        f"{rule.__name__}: {stack}/{name}: {what}"
        for stack, template in templates.items()
        for name, resource in template["Resources"].items()
        for rule in RULES
        for what in rule(resource["Type"], resource.get("Properties", {}), resource)
    ]
