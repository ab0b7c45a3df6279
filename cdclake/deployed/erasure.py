"""`cdclake forget --target aws`: an order with the keys in S3, and the job that takes it.

The arguments of a Glue job are shown in the console and logged, so they never have a key.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any
from urllib.parse import urlparse

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from cdclake.control_objects import forget_name
from cdclake.deployed.aws_calls import explained
from cdclake.deployed.aws_jobs import DeployedJob
from cdclake.deployed.erasure_places import places_of
from cdclake.errors import reported_error
from cdclake.forget.refused_plans import check_erasable
from cdclake.plan import Table


def erasable_table(job: DeployedJob, name: str) -> Table:
    """Return the table; raise InputError if its rows cannot be erased from this deployment."""
    plan = job.deployment.plan
    table = plan.table(name, of="file")
    check_erasable(plan, table)
    if table.delivery == "stream":
        job.check_stream()
    return table


def erase(
    job: DeployedJob, table: Table, keys: Sequence[Sequence[str]], grace: timedelta
) -> dict[str, Any]:
    """Run the job `forget_rows` for these keys to its end, and return its report.

    Raise the error that ended it.
    """
    with _ordered(job, keys) as order:
        report = job.run([table.name], order=order, grace=f"{grace.total_seconds():.0f}")
    if "error" in report:
        raise reported_error(report["error"], job.name)
    return {**report, "remaining": [*report["remaining"], *places_of(job.deployment, table)]}


@contextmanager
def _ordered(job: DeployedJob, keys: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write the order, and yield its id; at the end it is deleted, whatever has happened.

    The run deletes it earlier, when it reads it. If neither can, it expires after a day.
    """
    order = uuid.uuid4().hex
    with explained(job.name, "write the keys for"):
        parsed = urlparse(job.control_uri)
        client, name = boto3.client("s3"), forget_name(order)
        place = {"Bucket": parsed.netloc, "Key": f"{parsed.path.strip('/')}/{name}"}
        body = json.dumps({"keys": [list(key) for key in keys]}).encode()
        written = client.put_object(**place, Body=body)
    version = {"VersionId": written["VersionId"]} if "VersionId" in written else {}
    try:
        yield order
    finally:
        # The outcome matters more: without this deletion that of the run or the rule has to do.
        with suppress(BotoCoreError, ClientError):
            client.delete_object(**place, **version)
