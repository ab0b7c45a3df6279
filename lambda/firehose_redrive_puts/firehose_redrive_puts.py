"""Lambda function that puts the failed records of put streams again, a page per call.

Environment: BUCKET; PREFIX, the start of the names of the deployment's streams. The plan
(plan.json) is stored next to this file.
"""

from __future__ import annotations

import logging
import os
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from cdclake.plan import Plan
from cdclake.redrive.put_service import PutRedriveService

logging.getLogger().setLevel(logging.INFO)

_CALLS = Config(retries={"mode": "standard", "total_max_attempts": 8})
# A stream may have accepted records although its answer was lost: sent again, they would be there
# twice. BatchWriter retries what a stream has refused.
PUT_CALLS = Config(retries={"total_max_attempts": 1})


@cache
def _service() -> PutRedriveService:
    return PutRedriveService(
        Plan.from_json(Path(__file__).with_name("plan.json").read_text(encoding="utf-8")),
        prefix=os.environ["PREFIX"],
        bucket=os.environ["BUCKET"],
        s3=boto3.client("s3", config=_CALLS),
        firehose=boto3.client("firehose", config=PUT_CALLS),
        kinesis=boto3.client("kinesis", config=PUT_CALLS),
    )


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Redrive one page; `PutRedriveService.page` documents the keys of event and answer."""
    del context
    return _service().page(event)
