"""Subnets of a created network: a quarter of its addresses each."""

from __future__ import annotations

import ipaddress

SUBNET_BITS = 2  # for each of up to three zones, one quarter is spare
_RESERVED = 5  # VPC user guide, "Subnet CIDR blocks": the first four addresses and the last one


def usable_addresses(cidr: str) -> int:
    """Return the number of addresses in each subnet that interfaces can have.

    >>> usable_addresses("10.42.0.0/24"), usable_addresses("10.42.0.0/16")
    (59, 16379)
    """
    network = ipaddress.IPv4Network(cidr)
    return (network.num_addresses >> SUBNET_BITS) - _RESERVED
