"""What everything of a deployment stands on."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import RemovalPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentContext:
    """Network, key, and how long things are kept: the same for every part of a deployment."""

    prefix: str
    vpc_id: str
    subnet_ids: tuple[str, ...]
    zones: tuple[str, ...]  # of the subnets; empty for a network that exists already
    key_arn: str
    log_days: int
    protect: bool

    @property
    def kept(self) -> RemovalPolicy:
        """What becomes of a resource that holds data when it leaves its stack."""
        return kept(self.protect)


def kept(protect: bool) -> RemovalPolicy:
    """What `protect` in the pipeline file means to CloudFormation.

    What was made by a creation that then failed goes with it: left behind, it would hold its name
    against the next one.
    """
    return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if protect else RemovalPolicy.DESTROY
