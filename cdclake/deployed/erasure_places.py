"""Places of a deployment that an erasure does not reach, and until when they keep values."""

from __future__ import annotations

from collections.abc import Iterator

from cdclake import naming
from cdclake.config.aws_model import CreatedSource
from cdclake.config.deployment import (
    REPORT_DAYS,
    RESTORABLE_DAYS,
    RESULT_RESTORABLE_DAYS,
    Deployment,
)
from cdclake.plan import Table

_QUERY_HISTORY_DAYS = 45  # Athena's API reference, ListQueryExecutions


def places_of(deployment: Deployment, table: Table) -> list[dict[str, str]]:
    """Return the places of the table's rows, in the form of the report of `forget`."""
    return [{"where": where, "until": until} for where, until in _places(deployment, table)]


def _places(deployment: Deployment, table: Table) -> Iterator[tuple[str, str]]:
    aws = deployment.aws
    if table.delivery == "firehose":
        until = f"{RESTORABLE_DAYS} days after that run, or this command again"
        yield "versions of files that a later run of apply_changes deletes", until
    for derived in deployment.plan.derived:
        if table.name in derived.sources and derived.format != "iceberg" and derived.partition_by:
            until = "you delete them by `aws glue batch-delete-table-version`"
            yield f"archived versions of {derived.name} in Glue, which earlier releases kept", until
    yield "CloudWatch's logs of jobs, connector and database", f"{aws.log_days} days after each"
    yield "S3's access logs, which have names of objects", f"{aws.log_days} days after each"
    reports = f"{naming.CONTROL_PREFIX}/{naming.REPORTS}/"
    until = f"{REPORT_DAYS} days after each, and its versions a day later"
    yield f"reports of `verify` below {reports}, which show rows that differed", until
    days = aws.query.result_days + RESULT_RESTORABLE_DAYS
    yield "results of queries in Athena", f"{days} days after each"
    yield "texts of queries in Athena's history", f"{_QUERY_HISTORY_DAYS} days after each"
    if isinstance(source := aws.source.declared, CreatedSource):
        yield "backups of RDS", f"{source.backup_days} days after each; snapshots: deleted there"
