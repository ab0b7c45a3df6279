"""Region and account in the ARNs of existing resources."""

from __future__ import annotations

from typing import NamedTuple


class ResourceLocation(NamedTuple):
    """Region and account of a resource."""

    region: str
    account: str


def location_of(arn: str) -> ResourceLocation:
    """Return the region and the account in an ARN.

    >>> location_of("arn:aws:kafka:eu-west-1:111122223333:cluster/shop/0a1b2c3d-0a1b-1")
    ResourceLocation(region='eu-west-1', account='111122223333')
    """
    _, _, _, region, account, _ = arn.split(":", 5)
    return ResourceLocation(region, account)
