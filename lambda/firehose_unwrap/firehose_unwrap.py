"""Unwraps what is redriven: Firehose calls it with what the redrive put into its stream.

Each record names its relation, `{"table": ..., "row": {...}}`; the answer is the row alone, with
the relation as metadata. A record that is not so fails, and Firehose keeps it under its error
prefix.

Beside it lies the plan (plan.json).
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdclake.firehose.rows import encode, otf_metadata
from cdclake.plan import Plan
from cdclake.redrive.routed_rows import unwrapped

log = logging.getLogger()
log.setLevel(logging.INFO)

PLAN = Path(__file__).parent / "plan.json"


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """What Firehose calls."""
    del context
    database = Plan.from_json(PLAN.read_text(encoding="utf-8")).lake_database
    return {"records": [_answer(record, database) for record in event["records"]]}


def _answer(record: Mapping[str, Any], database: str) -> dict[str, Any]:
    try:
        relation, row = unwrapped(base64.b64decode(record["data"]))
    except ValueError as error:
        log.warning("%s was not put by the redrive: %s", record["recordId"], error)
        return {"recordId": record["recordId"], "result": "ProcessingFailed"}
    return {
        "recordId": record["recordId"],
        "result": "Ok",
        "data": base64.b64encode(encode(row).encode()).decode(),
        "metadata": otf_metadata(database, relation),
    }
