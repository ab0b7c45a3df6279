"""Lambda function that Firehose calls with the records of a Kafka topic.

Environment: CONTROL, the URI of the control objects; MASK_SALT, the secret with the pipeline's
salt. The plan (plan.json) is stored next to this file.
"""

from __future__ import annotations

import logging
import os
import time
from functools import cache
from pathlib import Path
from typing import Any

import boto3

from cdclake.control_reader import ControlReader
from cdclake.firehose.erased_rows import RecentRegister
from cdclake.firehose.record_transform import RecordTransform
from cdclake.plan import Plan
from cdclake.widened_columns import RecentlyWidened

logging.getLogger().setLevel(logging.INFO)


@cache
def _transform() -> RecordTransform:
    plan = Path(__file__).with_name("plan.json").read_text(encoding="utf-8")
    control = os.environ["CONTROL"]
    register = RecentRegister.of(boto3.client, control=control, salt=os.environ["MASK_SALT"])
    widened = RecentlyWidened(ControlReader(boto3.client("s3"), control))
    return RecordTransform(Plan.from_json(plan), register.read, widened.read)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer a batch of records from Firehose."""
    del context
    return {"records": _transform().answer(event["records"], time.time_ns() // 1000)}
