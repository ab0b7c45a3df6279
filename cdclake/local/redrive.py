"""The redrive of a running lake: the real function, over the local S3 and the local Firehose."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from cdclake.errors import ComponentFailed, InputError, NotRunning
from cdclake.local.firehose import component, load_function
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LocalLake
from cdclake.redrive.batch_writer import PutRejected
from cdclake.redrive.redrive_stream import redrive_stream


def redrive_here(lake: LocalLake) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What to call the function with; InputError if the lake has nothing that could be redriven,
    NotRunning if its Firehose takes nothing.
    """
    if redrive_stream(lake.plan) is None:
        raise InputError(
            "no table of the lake is delivered by Firehose", "give it one: `delivery: firehose`"
        )
    states = {part["name"]: part["state"] for part in stack.components(lake.home)}
    if states.get(component.NAME) != "running":
        remedy = "run `cdclake resume`" if lake.state.paused else "run `cdclake up`"
        raise NotRunning(f"{component.NAME} does not run", f"{remedy}, then this again")
    module = load_function.load("firehose_redrive")
    module.PLAN = component.plan_file(lake)  # type: ignore[attr-defined]
    os.environ.update(BUCKET=lake.bucket, PREFIX=lake.plan.name)

    def call(event: dict[str, Any]) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = module.handler(event, None)
        except PutRejected as error:
            raise ComponentFailed(
                str(error), "nothing is lost: run this again", component.NAME
            ) from None
        return answer

    return call
