"""Restrictions of regions and zones that `validate` knows, each with its source and date.

The list is not complete: `cdclake doctor --target aws` asks the account itself.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

from cdclake.places import RESOURCES


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction:
    """Limit of a region or zone, with the remedy and the source of the fact."""

    message: str
    remedy: str
    source: str
    read_on: str


# MSK developer guide, "How it works": in these regions a cluster has exactly two subnets.
_TWO_SUBNETS = ("ca-central-1", "sa-east-1", "us-west-1")
_MSK_GUIDE = "MSK developer guide, How it works"
# Zones without the default instance types.
_WITHOUT_GRAVITON = {"use1-az3": "wolfman.dev, Availability zones of us-east-1"}
_READ_ON = "2026-11-25"
_CHINA = "cn-"
# Firehose developer guide: all regions of GovCloud, and Taipei, Malaysia, New Zealand and Mexico
# (Central); those of China are refused altogether.
_WITHOUT_FIREHOSE = (
    "us-gov-",
    "ap-east-2",
    "ap-southeast-5",
    "ap-southeast-6",
    "mx-central-1",
)
_FIREHOSE_GUIDE = (
    "Firehose developer guide, Considerations and limitations of Apache Iceberg tables"
)
_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----([^-]+)-----END")
_REGION_OF_RDS = re.compile(rb"Amazon RDS ([a-z0-9-]+) Root CA")


def restrictions_of_partition(region: str) -> Iterator[Restriction]:
    """Yield that the region is in China, with other names of services than elsewhere."""
    if region.startswith(_CHINA):
        yield Restriction(
            message=f"cdclake cannot be deployed in {region}: names of endpoints and services"
            " differ in China",
            remedy="choose a region outside of China",
            source="aws-cdk, packages/aws-cdk-lib/aws-ec2/lib/vpc-endpoint.ts",
            read_on="2026-11-30",
        )


def has_two_subnets(region: object) -> bool:
    """Check whether MSK allows exactly two subnets for a cluster in the region."""
    return region in _TWO_SUBNETS


def restrictions(
    region: str, zones: Sequence[object], *, cluster_subnets: int | None
) -> Iterator[Restriction]:
    """Yield what the region refuses of a network in these zones, letters or zone IDs.

    `cluster_subnets` is the number of subnets for a new cluster of MSK; None without one.
    """
    if has_two_subnets(region) and cluster_subnets not in (None, 2):
        yield Restriction(
            message=f"MSK allows exactly two subnets in {region}",
            remedy="list two zones, like `zones: [a, b]`, or two of an existing network's subnets",
            source=_MSK_GUIDE,
            read_on=_READ_ON,
        )
    for zone in zones:
        if not isinstance(zone, str):
            continue
        if zone in _WITHOUT_GRAVITON:
            yield Restriction(
                message=f"the zone {zone} has no Graviton instances, which the default sizes use",
                remedy="list other zones, like `zones: [use1-az1, use1-az2, use1-az4]`",
                source=_WITHOUT_GRAVITON[zone],
                read_on=_READ_ON,
            )
        elif len(zone) > 1 and not zone.startswith(short_name(region)):
            yield Restriction(
                message=f"the zone {zone} is not in {region}",
                remedy=f"list zone IDs of {region}, like `{short_name(region)}-az1`",
                source="AWS RAM user guide, Availability Zone IDs",
                read_on=_READ_ON,
            )


def restrictions_of_firehose(region: str) -> Iterator[Restriction]:
    """Yield that the region has no Firehose for Iceberg tables."""
    if region.startswith(_WITHOUT_FIREHOSE):
        yield Restriction(
            message=f"Firehose does not write Iceberg tables in {region}",
            remedy="choose another region, or `delivery: stream` for tables; put tables and web"
            " logs need Firehose",
            source=_FIREHOSE_GUIDE,
            read_on="2026-11-29",
        )


def restrictions_of_source(region: str) -> Iterator[Restriction]:
    """Yield that nothing can verify a database server of RDS in the region."""
    if region not in certified_regions():
        yield Restriction(
            message=f"the certificates of RDS in {region} are not packed: the connector and the"
            " jobs could not verify the database server",
            remedy="choose another region; or, in a clone, replace"
            " java/resources/cdclake/connect/rds-ca.pem by AWS's bundle"
            " (truststore.pki.rds.amazonaws.com), and run `make plugins`",
            source="the names of the certificates in rds-ca.pem",
            read_on="2026-11-30",
        )


@lru_cache(maxsize=1)
def certified_regions() -> Set[str]:
    """Return the regions whose certificate authorities of RDS are packed."""
    text = (RESOURCES / "rds-ca.pem").read_text(encoding="ascii")
    names = (b64decode(body) for body in _CERTIFICATE.findall(text))
    return {region.decode() for name in names for region in _REGION_OF_RDS.findall(name)}


def short_name(region: str) -> str:
    """Return the short form of a region that its zone IDs start with.

    >>> short_name("eu-west-1"), short_name("ap-northeast-1"), short_name("us-gov-west-1")
    ('euw1', 'apne1', 'usgw1')
    """
    area, *directions, number = region.split("-")
    return area + "".join(map(_short_direction, directions)) + number


def _short_direction(word: str) -> str:
    pairs = {"northeast": "ne", "northwest": "nw", "southeast": "se", "southwest": "sw"}
    return pairs.get(word, word[0])
