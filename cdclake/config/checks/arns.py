"""Check that existing resources are in the deployment's region and account."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdclake.config.document import Document
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem
from cdclake.config.resource_location import location_of

_EXISTING = {
    "secret": ("aws", "source", "existing", "secret_arn"),
    "cluster": ("aws", "kafka", "existing", "cluster_arn"),
}
_ARN_COLONS = 5  # an ARN with fewer is refused by its pattern


def check_arns(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse a secret and a cluster of other regions than `aws: region`, or of two accounts."""
    del tables
    region, accounts = document.get("aws", "region"), set[str]()
    for what, location in _EXISTING.items():
        arn = document.get(*location)
        if not isinstance(arn, str) or arn.count(":") < _ARN_COLONS:
            continue
        place = location_of(arn)
        if isinstance(region, str) and place.region != region:
            yield document.problem(
                location,
                f"the {what} is in {place.region}, and the deployment in {region}",
                f"use a {what} of {region}, or correct `aws: region`",
            )
        accounts.add(place.account)
        if len(accounts) > 1:
            yield document.problem(
                location,
                "the secret and the cluster are in different accounts",
                "use those of the account that is deployed",
            )
