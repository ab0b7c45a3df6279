"""Lambda function that Firehose calls with the records of a stream of `puts:`.

The stream with its tables (put_stream.json) is stored next to this file, and so is the user's
folder `transform`.
"""

from __future__ import annotations

import json
import logging
from functools import cache
from pathlib import Path
from typing import Any

from cdclake.puts.put_table import PutStream
from cdclake.puts.put_transform import PutTransform, load_handler

logging.getLogger().setLevel(logging.INFO)


@cache
def _transform() -> PutTransform:
    here = Path(__file__).parent
    put = PutStream.from_raw(json.loads((here / "put_stream.json").read_text(encoding="utf-8")))
    before = load_handler(here / "transform", put.name) if put.transform else None
    return PutTransform(put, before)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer a batch of records from Firehose."""
    return _transform().answer(event, context)
