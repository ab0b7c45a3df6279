"""Redrive of a running local lake, through the local S3 and the local Firehose."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from cdclake.errors import ComponentFailed, NotRunning
from cdclake.local.firehose import component
from cdclake.local.firehose.control_reads import erased_keys, widened_columns
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LocalLake
from cdclake.redrive.batch_writer import PutRejected
from cdclake.redrive.catalog_changelogs import read_changelogs
from cdclake.redrive.pages import RedrivePage, redrive_all
from cdclake.redrive.put_service import PUTS_REPEATED, PutRedriveService
from cdclake.redrive.service import RedriveService


def redrive_lake(lake: LocalLake, *, dry_run: bool) -> dict[str, Any]:
    """Redrive all failed records of the lake, and return what became of them.

    Raise NotRunning if the local Firehose is stopped, ComponentFailed if it does not accept the
    records.
    """
    if lake.plan.streams:
        _check_running(lake)
    try:
        return redrive_all(*_pages(lake), dry_run=dry_run)
    except PutRejected as error:
        repeats = PUTS_REPEATED if lake.plan.put_streams else ""
        raise ComponentFailed(
            str(error), f"nothing is lost: run this command again{repeats}", component.NAME
        ) from None


def _pages(lake: LocalLake) -> Iterator[RedrivePage]:
    """Yield the pages of the changes that failed, then those of the put records."""
    s3, firehose = lake.client("s3"), lake.client("firehose")
    if lake.plan.deliveries:
        yield RedriveService(
            lake.plan,
            prefix=lake.plan.name,
            bucket=lake.bucket,
            s3=s3,
            firehose=firehose,
            erased=erased_keys(lake).read,
            widened=widened_columns(lake).read,
            changelogs=partial(read_changelogs, lake.client("glue"), lake.plan.lake_database),
        ).page
    if lake.plan.put_streams:
        yield PutRedriveService(
            lake.plan,
            prefix=lake.plan.name,
            bucket=lake.bucket,
            s3=s3,
            firehose=firehose,
            kinesis=lake.client("kinesis"),
        ).page


def _check_running(lake: LocalLake) -> None:
    states = {part["name"]: part["state"] for part in stack.components(lake.home)}
    if states.get(component.NAME) != "running":
        remedy = "run `cdclake resume`" if lake.state.paused else "run `cdclake up`"
        raise NotRunning(f"{component.NAME} is not running", f"{remedy}, then try again")
