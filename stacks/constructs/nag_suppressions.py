"""Suppression of accepted cdk-nag findings, at their resource and with the reason."""

from __future__ import annotations

from aws_cdk import Acknowledgment, Validations
from constructs import Construct

_PACK = "AwsSolutions"


def suppress(construct: Construct, rule: str, reason: str) -> None:
    """Acknowledge the rule's finding on this construct, and only there.

    The id includes the pack: without it the finding would disappear from the report (tested with
    cdk-nag 3.0.2).
    """
    Validations.of(construct).acknowledge(
        Acknowledgment(id=f"{_PACK}::{_PACK}-{rule}", reason=reason)
    )
