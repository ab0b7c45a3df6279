"""What the roles of a deployment allow, in a form that a test can spell out."""

from __future__ import annotations

from typing import Any

from tests.synth.deployments import Synthesized
from tests.synth.rules.reading import listed

_KNOWN = {"AWS::Region": "R", "AWS::AccountId": "A", "AWS::Partition": "P"}


def allowances(deployed: Synthesized, service: str, *, named: str = "") -> dict[str, set[str]]:
    """By action the resources that the one role of this service may use it on.

    `named` is part of the role's logical id, where the service has several. An ARN is spelled from
    its service on, with R and A for region and account.
    """
    [role] = [
        resource["Properties"]
        for template in deployed.templates.values()
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role"
        and service in str(resource["Properties"]["AssumeRolePolicyDocument"])
        and named in name
    ]
    allowed: dict[str, set[str]] = {}
    for statement in role["Policies"][0]["PolicyDocument"]["Statement"]:
        for action in listed(statement["Action"]):
            for resource in listed(statement["Resource"]):
                allowed.setdefault(action, set()).add(_spelled(resource))
    return allowed


def _spelled(resource: Any) -> str:
    if not isinstance(resource, dict) or "Fn::Join" not in resource:
        return str(resource)
    parts = [
        part if isinstance(part, str) else _KNOWN.get(part.get("Ref", ""), "?")
        for part in resource["Fn::Join"][1]
    ]
    return "".join(parts).removeprefix("arn:P:")
