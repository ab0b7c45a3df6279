"""What IAM would say of a call, from a role's own statements alone, with the template's values made
up: buckets by their names here, ARNs of this account."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from tests.synth.deployments import Synthesized, Template
from tests.synth.rules.reading import listed

KNOWN = {
    "AWS::Partition": "aws",
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::Region": "eu-west-1",
    "AWS::AccountId": "111122223333",
}
# Resources and exports of other stacks, by what their names hold.
IMPORTED = {
    "AttStateBucket": "arn:aws:s3:::state",
    "AttWarehouseBucket": "arn:aws:s3:::warehouse",
    "AttEncryptionKey": "arn:aws:kms:eu-west-1:111122223333:key/own",
    "AttRowsFunction": "arn:aws:lambda:eu-west-1:111122223333:function:rows",
    "RefLogGroup": "firehose-log",
    "RefLoginSecret": "arn:aws:secretsmanager:eu-west-1:111122223333:secret:shop/source-1a",
    "AttKafkaCluster": "arn:aws:kafka:eu-west-1:111122223333:cluster/shop/uuid",
}


def allows(role: Template, action: str, resource: str, **context: str) -> bool:
    """Whether a statement of the role allows the call; `context` has the keys of its conditions."""
    return any(_fits(statement, action, resource, context) for statement in own_statements(role))


def role_of(deployed: Synthesized, name: str) -> Template:
    """The one role whose logical id begins so, in whatever stack."""
    found: list[Template] = [
        resource
        for template in deployed.templates.values()
        for logical, resource in template["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role" and re.match(rf"{name}Role[0-9A-F]", logical)
    ]
    [role] = found
    return role


def own_statements(role: Template) -> Iterator[dict[str, Any]]:
    for policy in role["Properties"]["Policies"]:
        yield from listed(policy["PolicyDocument"]["Statement"])


def _fits(
    statement: dict[str, Any], action: str, resource: str, context: Mapping[str, str]
) -> bool:
    assert statement["Effect"] == "Allow"
    actions = [str(each) for each in listed(statement["Action"])]
    resources = [rendered(each) for each in listed(statement["Resource"])]
    return (
        any(fnmatchcase(action, each) for each in actions)
        and any(fnmatchcase(resource, each) for each in resources)
        and all(
            any(
                fnmatchcase(context.get(key.split(":")[1], ""), rendered(v)) for v in listed(values)
            )
            for condition in statement.get("Condition", {}).values()
            for key, values in condition.items()
        )
    )


def rendered(value: Any) -> str:
    """The text that CloudFormation would put there."""
    if not isinstance(value, dict):
        return str(value)
    [(function, argument)] = value.items()
    match function:
        case "Fn::Join":
            return str(argument[0]).join(rendered(part) for part in argument[1])
        case "Fn::Sub":
            return re.sub(r"\$\{(.+?)\}", lambda found: KNOWN[found[1]], argument)
        case "Ref" if argument in KNOWN:
            return KNOWN[argument]
        case "Ref":
            argument = f"Ref{argument}"
        case "Fn::GetAtt":
            argument = f"Att{''.join(argument)}"
    for part, arn in IMPORTED.items():
        if part in argument:
            return arn
    return str(argument)
