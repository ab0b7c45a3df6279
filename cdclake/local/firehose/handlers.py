"""Functions of the streams, called in this process; on AWS they run on Lambda."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from cdclake.firehose import redrive_stream
from cdclake.firehose.erased_rows import ReadErased
from cdclake.firehose.record_transform import RecordTransform
from cdclake.firehose.stream import CHANGES_FUNCTION, DeliveryStream
from cdclake.local.firehose.function import Handler
from cdclake.plan import Plan
from cdclake.puts import put_table
from cdclake.puts.put_transform import PutTransform, load_handler
from cdclake.redrive.unwrap import unwrap_records
from cdclake.web_logs import model as web_logs
from cdclake.web_logs.request_transform import transform_requests
from cdclake.widened_columns import ReadWidened, WidenedColumns

_Transform = Callable[[Sequence[Mapping[str, Any]]], list[dict[str, Any]]]


def handler_of(
    stream: DeliveryStream,
    plan: Plan,
    transforms: Path,
    erased: ReadErased,
    widened: ReadWidened = WidenedColumns,
) -> Handler:
    """Return the handler of the stream's function in `lambda/`, with the plan of a deployment.

    The folders of the users' transforms are in `transforms`, by stream. `erased` returns the erased
    keys, `widened` the columns that the source has widened.
    """
    if stream.function == put_table.FUNCTION:
        return _put_handler(stream, plan, transforms)
    transforms_of_plan: dict[str, Callable[[Plan], _Transform]] = {
        CHANGES_FUNCTION: partial(_changes, erased=erased, widened=widened),
        redrive_stream.FUNCTION: lambda plan: partial(unwrap_records, database=plan.lake_database),
        web_logs.FUNCTION: lambda _: transform_requests,
    }
    transform = transforms_of_plan[str(stream.function)](plan)

    def handler(event: dict[str, Any], _: Any) -> dict[str, Any]:
        return {"records": transform(event["records"])}

    return handler


def _put_handler(stream: DeliveryStream, plan: Plan, transforms: Path) -> Handler:
    [put] = [put for put in plan.puts if put.stream == stream]

    @cache  # at the first call, as on Lambda: a broken transform fails its calls only
    def loaded() -> PutTransform:
        before = load_handler(transforms / put.name, put.name) if put.transform else None
        return PutTransform(put, before)

    return lambda event, context: loaded().answer(event, context)


def _changes(plan: Plan, erased: ReadErased, widened: ReadWidened) -> _Transform:
    transform = RecordTransform(plan, erased, widened)
    return lambda records: transform.answer(records, time.time_ns() // 1000)
