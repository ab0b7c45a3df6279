"""Lambda function that redrives the records that Firehose could not deliver, a page per call.

Environment: BUCKET; PREFIX, the start of the names of the deployment's streams; CONTROL, the URI of
the control objects; MASK_SALT, the secret with the pipeline's salt. The plan (plan.json) is stored
next to this file.
"""

from __future__ import annotations

import logging
import os
from functools import cache, partial
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from cdclake.control_reader import ControlReader
from cdclake.firehose.erased_rows import RecentRegister
from cdclake.plan import Plan
from cdclake.redrive.catalog_changelogs import read_changelogs
from cdclake.redrive.service import RedriveService
from cdclake.widened_columns import RecentlyWidened

logging.getLogger().setLevel(logging.INFO)

_CALLS = Config(retries={"mode": "standard", "total_max_attempts": 8})


@cache
def _service() -> RedriveService:
    client, control = partial(boto3.client, config=_CALLS), os.environ["CONTROL"]
    register = RecentRegister.of(client, control=control, salt=os.environ["MASK_SALT"])
    s3 = client("s3")
    plan = Plan.from_json(Path(__file__).with_name("plan.json").read_text(encoding="utf-8"))
    return RedriveService(
        plan,
        prefix=os.environ["PREFIX"],
        bucket=os.environ["BUCKET"],
        s3=s3,
        firehose=client("firehose"),
        erased=register.read,
        widened=RecentlyWidened(ControlReader(s3, control)).read,
        changelogs=partial(read_changelogs, client("glue"), plan.lake_database),
    )


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Redrive one page; `RedriveService.page` documents the keys of event and answer."""
    del context
    return _service().page(event)
