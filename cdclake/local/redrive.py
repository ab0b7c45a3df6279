"""Redrive of a running local lake, through the local S3 and the local Firehose."""

from __future__ import annotations

from typing import Any

from cdclake.errors import ComponentFailed, InputError, NotRunning
from cdclake.local.firehose import component
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LocalLake
from cdclake.redrive.batch_writer import PutRejected
from cdclake.redrive.redrive_stream import redrive_stream
from cdclake.redrive.service import RedriveService, redrive_all


def redrive_lake(lake: LocalLake, *, dry_run: bool) -> dict[str, Any]:
    """Redrive all failed records of the lake, and return what became of them.

    Raise InputError if Firehose delivers none of its tables, NotRunning if the local Firehose is
    stopped, ComponentFailed if it does not accept the rows.
    """
    _check(lake)
    service = RedriveService(
        lake.plan,
        prefix=lake.plan.name,
        bucket=lake.bucket,
        s3=lake.client("s3"),
        firehose=lake.client("firehose"),
    )
    try:
        return redrive_all(service.page, dry_run=dry_run)
    except PutRejected as error:
        raise ComponentFailed(
            str(error), "nothing is lost: run this command again", component.NAME
        ) from None


def _check(lake: LocalLake) -> None:
    if redrive_stream(lake.plan) is None:
        if lake.plan.put_streams:
            raise InputError(
                "redrive does not cover web logs and put tables",
                "put their failed records again: docs/puts.md shows how",
            )
        raise InputError(
            "no table of the lake is delivered by Firehose",
            "declare `delivery: firehose` for a table",
        )
    states = {part["name"]: part["state"] for part in stack.components(lake.home)}
    if states.get(component.NAME) != "running":
        remedy = "run `cdclake resume`" if lake.state.paused else "run `cdclake up`"
        raise NotRunning(f"{component.NAME} is not running", f"{remedy}, then try again")
