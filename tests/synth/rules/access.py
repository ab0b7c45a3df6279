"""Who may do what, who may connect to whom, and what nobody may read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.synth.deployments import Template
from tests.synth.rules.kafka import REFERENCE
from tests.synth.rules.reading import listed, statements, walk

# These services send no word of the caller's account when they take on a role.
TRUSTED_WITHOUT_SOURCE = {"lakeformation.amazonaws.com", "lambda.amazonaws.com"}
LOOKED_AT = (
    "NetworkInterfaces", "RouteTables", "SecurityGroups", "Subnets", "VpcAttribute",
    "VpcEndpoints", "Vpcs",
)  # fmt: skip
# IAM knows no resources for these (its Service Authorization Reference), or their requests name
# none; what bounds one instead.
WITHOUT_RESOURCES = {
    "glue:GetSchemaVersion": "",  # by a version's UUID
    "cloudwatch:GetMetricStatistics": "",
    "cloudwatch:PutMetricData": "cloudwatch:namespace",
    "kafka:GetBootstrapBrokers": "",
    "kafkaconnect:ListConnectors": "",
    "lakeformation:GetDataAccess": "",
    "ecr:GetAuthorizationToken": "",
    **{f"ec2:Describe{what}": "" for what in LOOKED_AT},
}
SECRET_PROPERTY = re.compile(r"password|passphrase|secretstring$", re.IGNORECASE)
NOT_SECRET = {"ManageMasterUserPassword", "GenerateSecretString", "PasswordLength"}
NOT_SECRET |= {"database.password"}  # of a connector: a reference, at which its own rule looks
HTTPS = 443
MAX_POLICIES = 10_240  # characters
PSEUDO_PARAMETERS = {
    "AWS::Partition": "aws-us-gov",
    "AWS::Region": "ap-northeast-1",
    "AWS::AccountId": "111122223333",
    "AWS::URLSuffix": "amazonaws.com",
}
# As long as that of a bucket whose name has the greatest length, and longer than that of a key.
LONG_ARN = f"arn:aws-us-gov:s3:::{'b' * 63}"


def no_clear_secret(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """A template is read by everybody who may list stacks."""
    for path, value in walk(properties):
        if isinstance(value, str) and "{{resolve:" in value:
            yield f"{'.'.join(path)} resolves a secret into {kind}, where it can be read"
        named = path and path[-1] not in NOT_SECRET and SECRET_PROPERTY.search(path[-1])
        is_reference = isinstance(value, dict) or REFERENCE.fullmatch(str(value))
        if named and value and not is_reference:
            yield f"{'.'.join(path)} holds a secret in the clear"


def no_managed_policy(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """AWS widens its managed policies as it likes; ours say what they say."""
    if properties.get("ManagedPolicyArns"):
        yield f"{kind} has a managed policy"


def roles_fit_iam(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """IAM counts the inline policies of a role together, without whitespace."""
    if kind == "AWS::IAM::Role":
        policies = [each["PolicyDocument"] for each in properties.get("Policies", [])]
        size = sum(len(json.dumps(_spelled(each), separators=(",", ":"))) for each in policies)
        if size > MAX_POLICIES:
            yield f"{kind} has inline policies of {size} characters"


def _spelled(value: Any) -> Any:
    """Return the value with texts of realistic length where CloudFormation puts some."""
    if isinstance(value, list):
        return [_spelled(each) for each in value]
    if not isinstance(value, dict):
        return value
    [*keys] = value
    if keys == ["Fn::Join"]:
        separator, parts = value["Fn::Join"]
        return separator.join(map(_spelled, parts))
    if keys == ["Ref"] and value["Ref"] in PSEUDO_PARAMETERS:
        return PSEUDO_PARAMETERS[value["Ref"]]
    if len(keys) == 1 and (keys[0] == "Ref" or keys[0].startswith("Fn::")):
        return LONG_ARN
    return {key: _spelled(each) for key, each in value.items()}


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


def called_by_ours_only(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """A service calls our function for this account's resource only."""
    if kind == "AWS::Lambda::Permission":
        for needed in ("SourceAccount", "SourceArn"):
            if needed not in properties:
                yield f"{kind} lets the service call for anybody, without {needed}"
    if kind == "AWS::Lambda::Function" and "LoggingConfig" not in properties:
        yield f"{kind} makes its own log group, without an end"
