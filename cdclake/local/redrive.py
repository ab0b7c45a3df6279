"""The redrive of a running lake: the real function, over the local S3 and the local Firehose."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from cdclake.errors import ComponentFailed, InputError, NotRunning
from cdclake.local import functions, stack
from cdclake.local.components import firehose
from cdclake.local.lake import Lake
from cdclake.redrive.puts import NotAccepted
from cdclake.redrive.stream import redrive_stream


def redrive_here(lake: Lake) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What to call the function with; InputError if the lake has nothing that could be redriven,
    NotRunning if its Firehose takes nothing."""
    if redrive_stream(lake.plan) is None:
        raise InputError(
            "no table of the lake is delivered by Firehose", "give it one: `delivery: firehose`"
        )
    states = {part["name"]: part["state"] for part in stack.components(lake.home)}
    if states.get(firehose.NAME) != "running":
        remedy = "run `cdclake resume`" if lake.state.paused else "run `cdclake up`"
        raise NotRunning(f"{firehose.NAME} does not run", f"{remedy}, then this again")
    module = functions.load("firehose_redrive")
    module.PLAN = firehose.plan_file(lake)  # type: ignore[attr-defined]
    os.environ.update(BUCKET=lake.bucket, PREFIX=lake.plan.name)

    def call(event: dict[str, Any]) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = module.handler(event, None)
        except NotAccepted as error:
            raise ComponentFailed(
                str(error), "nothing is lost: run this again", firehose.NAME
            ) from None
        return answer

    return call
