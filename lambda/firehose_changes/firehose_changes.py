"""Lambda function that Firehose calls with the records of a Kafka topic.

The plan (plan.json) is stored next to this file.
"""

from __future__ import annotations

import logging
import time
from functools import cache
from pathlib import Path
from typing import Any

from cdclake.firehose.record_transform import RecordTransform
from cdclake.plan import Plan

logging.getLogger().setLevel(logging.INFO)


@cache
def _transform() -> RecordTransform:
    plan = Path(__file__).with_name("plan.json").read_text(encoding="utf-8")
    return RecordTransform(Plan.from_json(plan))


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer a batch of records from Firehose."""
    del context
    return {"records": _transform().answer(event["records"], time.time_ns() // 1000)}
