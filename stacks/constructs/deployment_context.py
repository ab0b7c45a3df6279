"""The context that all parts of a deployment share."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import RemovalPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentContext:
    """Network, key and retention, the same for every part of a deployment."""

    prefix: str
    vpc_id: str
    subnet_ids: tuple[str, ...]
    zones: tuple[str, ...]  # of the subnets; empty for an existing network
    key_arn: str
    log_days: int
    protect: bool

    @property
    def kept(self) -> RemovalPolicy:
        """Return the removal policy of resources that hold data."""
        return kept(self.protect)


def kept(protect: bool) -> RemovalPolicy:
    """Return the removal policy for `protect` in the pipeline file.

    Resources of a failed creation are deleted in any case: left behind, they would block their
    names for the next attempt.
    """
    return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if protect else RemovalPolicy.DESTROY
