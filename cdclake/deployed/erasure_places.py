"""Places of a deployment that an erasure does not reach, and until when they keep values."""

from __future__ import annotations

from collections.abc import Iterator

from cdclake.config.aws_model import CreatedSource
from cdclake.config.deployment import Deployment


def places_of(deployment: Deployment) -> list[dict[str, str]]:
    """Return the places, in the form of the report of `forget`."""
    return [{"where": where, "until": until} for where, until in _places(deployment)]


def _places(deployment: Deployment) -> Iterator[tuple[str, str]]:
    aws = deployment.aws
    yield "CloudWatch's logs of jobs, connector and database", f"{aws.log_days} days after each"
    yield "S3's access logs, which have names of objects", f"{aws.log_days} days after each"
    yield "results of queries in Athena", f"{aws.query.result_days} days after each"
    if isinstance(source := aws.source.declared, CreatedSource):
        yield "backups of RDS", f"{source.backup_days} days after each; snapshots: deleted there"
