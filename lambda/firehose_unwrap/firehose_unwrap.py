"""Lambda function that Firehose calls with the records of the redrive stream.

The plan (plan.json) is stored next to this file.
"""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path
from typing import Any

from cdclake.plan import Plan
from cdclake.redrive.unwrap import unwrap_records

logging.getLogger().setLevel(logging.INFO)


@cache
def _plan() -> Plan:
    return Plan.from_json(Path(__file__).with_name("plan.json").read_text(encoding="utf-8"))


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer a batch of records from Firehose."""
    del context
    return {"records": unwrap_records(event["records"], _plan().lake_database)}
