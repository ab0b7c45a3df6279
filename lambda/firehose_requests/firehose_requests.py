"""Lambda function that Firehose calls with the requests of web logs."""

from __future__ import annotations

import logging
from typing import Any

from cdclake.web_logs.request_transform import transform_requests

logging.getLogger().setLevel(logging.INFO)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer a batch of records from Firehose."""
    del context
    return {"records": transform_requests(event["records"])}
