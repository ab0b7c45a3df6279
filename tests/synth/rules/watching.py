"""Alarms, and whom they reach."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from cdclake.naming import runbook_command
from tests.synth.deployments import Template
from tests.synth.rules.reading import statements


def alarms_lead_somewhere(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Somebody is told, also when it is over, what silence means, and which page to open."""
    if kind == "AWS::CloudWatch::Alarm":
        for needed in ("AlarmActions", "OKActions", "TreatMissingData"):
            if not properties.get(needed):
                yield f"{kind} has no {needed}"
        if properties.get("ActionsEnabled", True) is not True:
            yield f"{kind} tells nobody"
        name = re.sub(r"-[0-9]+$", "", str(properties["AlarmName"]).partition("-")[2])
        description = properties.get("AlarmDescription", "")
        if not description.endswith(f" Runbook: {runbook_command(name)}"):
            yield f"{kind} names no runbook of its own"


def topics_are_for_alarms(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Encrypted with our key, over TLS, and for nothing but what this account's services say."""
    if kind == "AWS::SNS::Topic" and "KmsMasterKeyId" not in properties:
        yield f"{kind} is not encrypted with our key"
    if kind == "AWS::SNS::TopicPolicy":
        conditions = [(s["Effect"], json.dumps(s.get("Condition"))) for s in statements(properties)]
        if not any(e == "Deny" and "aws:SecureTransport" in text for e, text in conditions):
            yield f"{kind} takes messages without TLS"
        for effect, text in conditions:
            for key in ("aws:SourceAccount", "aws:SourceArn"):
                if effect == "Allow" and key not in text:
                    yield f"{kind} lets somebody publish for anybody, without {key}"


def keys_are_for_this_account(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """A service uses the key for this account's resource only."""
    if kind == "AWS::KMS::Key":
        for statement in statements(properties):
            condition = json.dumps(statement.get("Condition", {}))
            if "Service" in statement["Principal"] and "AWS::AccountId" not in condition:
                yield f"{kind} lets {statement['Principal']['Service']} use it for anybody"
