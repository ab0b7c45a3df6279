"""A second opinion about the deployed policies: parliament, with AWS's list of actions.

It knows each action's resource types and condition keys (Service Authorization Reference, as of its
release), which neither CloudFormation's schema nor cdk-nag does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from parliament import analyze_policy_string

from tests.synth.deployments import Synthesized, Template
from tests.synth.permissions import rendered
from tests.synth.rules.reading import listed

HERE = "eu-west-1:111122223333"
# Of a token that stands for a whole ARN, by what its logical id holds.
ARNS = {
    "Group": f"arn:aws:logs:{HERE}:log-group:x:*",
    "Log": f"arn:aws:logs:{HERE}:log-group:x:*",
    "Failed": f"arn:aws:sqs:{HERE}:x",
    "Queue": f"arn:aws:sqs:{HERE}:x",
    "Secret": f"arn:aws:secretsmanager:{HERE}:secret:x",
    "Salt": f"arn:aws:secretsmanager:{HERE}:secret:x",
    "Shards": f"arn:aws:kinesis:{HERE}:stream/x",
    "Function": f"arn:aws:lambda:{HERE}:function:x",
    "Bucket": "arn:aws:s3:::x",
}
# Findings that are no faults, with the reason.
_EVERYTHING = "Lambda wants all resources of the account, which `*/*` is and parliament doubts"
ACCEPTED = {
    ("RESOURCE_MISMATCH", "ec2:AssignPrivateIpAddresses"): _EVERYTHING,
    ("RESOURCE_MISMATCH", "ec2:DeleteNetworkInterface"): _EVERYTHING,
    ("RESOURCE_MISMATCH", "ec2:UnassignPrivateIpAddresses"): _EVERYTHING,
    ("RESOURCE_STAR", "ec2:DescribeVpcAttribute"): "Glue asks for VPCs that it does not name",
    ("UNKNOWN_ACTION", "kafkaconnect:RestartConnector"): "newer than the list; botocore has it",
}


def policies(deployed: Synthesized) -> Iterator[tuple[str, Template]]:
    """Each role's logical id, with the policy that CloudFormation would render."""
    for template in deployed.templates.values():
        for name, resource in template["Resources"].items():
            if resource["Type"] == "AWS::IAM::Role":
                for policy in resource["Properties"].get("Policies", []):
                    yield name, as_rendered(policy["PolicyDocument"])


def as_rendered(document: Template) -> Template:
    """The policy with a value for each token; one that stands alone becomes an ARN."""
    statements = []
    for statement in listed(document["Statement"]):
        resources = [str(rendered(each)) for each in listed(statement["Resource"])]
        statements.append({**statement, "Resource": [as_arn(each) for each in resources]})
    text = json.dumps({"Version": "2012-10-17", "Statement": statements}, default=str)
    return dict(json.loads(text, object_hook=without_tokens))


def as_arn(text: str) -> str:
    """The ARN without the colons of an export's name, which stands for an id or for an ARN."""
    if text == "*" or text.startswith("arn:"):
        return re.sub(r"[\w-]+:ExportsOutput\w+", "exported", text)
    [arn, *_] = [arn for part, arn in ARNS.items() if part in text] or [text]
    return arn


def without_tokens(value: dict[str, Any]) -> Any:
    is_token = len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref"))
    return rendered(value) if is_token else value


def findings(policy: Template) -> Iterator[tuple[str, str]]:
    """What parliament finds: the kind, and the actions or the text that it names."""
    for found in analyze_policy_string(json.dumps(policy)).findings:
        named = re.findall(r"[a-z0-9-]+:[A-Z]\w+", str(found.detail)) or [str(found.detail)]
        yield from ((found.issue, action) for action in named)


@pytest.mark.parametrize("name", ["created", "governed", "delivered", "connectors"])
def test_parliament_finds_nothing_that_is_not_explained(variants, name):
    found = {
        (role, *finding)
        for role, policy in policies(variants[name])
        for finding in findings(policy)
        if finding not in ACCEPTED
    }
    assert found == set()


def test_parliament_finds_an_action_on_a_resource_that_it_has_not():
    """The fault that the brokers' addresses had: MSK would have refused every call."""
    cluster = "arn:aws:kafka:eu-west-1:111122223333:cluster/shop/uuid"
    statement = {"Effect": "Allow", "Action": "kafka:GetBootstrapBrokers", "Resource": cluster}
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    assert list(findings(policy)) == [("RESOURCE_MISMATCH", "kafka:GetBootstrapBrokers")]
