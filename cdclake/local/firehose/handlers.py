"""Functions of the streams, called in this process; on AWS they run on Lambda."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from cdclake.firehose.record_transform import RecordTransform
from cdclake.firehose.stream import CHANGES_FUNCTION
from cdclake.local.firehose.function import Handler
from cdclake.plan import Plan
from cdclake.redrive import redrive_stream
from cdclake.redrive.unwrap import unwrap_records
from cdclake.web_logs import model as web_logs
from cdclake.web_logs.request_transform import transform_requests

_Transform = Callable[[Sequence[Mapping[str, Any]]], list[dict[str, Any]]]


def handler_of(function: str, plan: Plan) -> Handler:
    """Return the handler of a function in `lambda/`, with the plan of a deployment."""
    transforms: dict[str, Callable[[Plan], _Transform]] = {
        CHANGES_FUNCTION: _changes,
        redrive_stream.FUNCTION: lambda plan: partial(unwrap_records, database=plan.lake_database),
        web_logs.FUNCTION: lambda _: transform_requests,
    }
    transform = transforms[function](plan)

    def handler(event: dict[str, Any], _: Any) -> dict[str, Any]:
        return {"records": transform(event["records"])}

    return handler


def _changes(plan: Plan) -> _Transform:
    transform = RecordTransform(plan)
    return lambda records: transform.answer(records, time.time_ns() // 1000)
