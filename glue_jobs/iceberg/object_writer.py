"""Writing and reading whole files at a table's location, from a Spark task."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import boto3
import pyarrow as pa


def write_object(location: str, content: pa.Buffer, s3_options: Mapping[str, str]) -> None:
    """Write a new file in one request; `s3_options` are arguments of S3's PutObject."""
    parsed = urlparse(location)
    if parsed.scheme in ("", "file"):
        path = Path(parsed.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return
    key = parsed.path.removeprefix("/")
    _s3().put_object(Bucket=parsed.netloc, Key=key, Body=content.to_pybytes(), **s3_options)


def read_object(location: str) -> pa.Buffer:
    """Read a whole file."""
    parsed = urlparse(location)
    if parsed.scheme in ("", "file"):
        return pa.py_buffer(Path(parsed.path).read_bytes())
    answer = _s3().get_object(Bucket=parsed.netloc, Key=parsed.path.removeprefix("/"))
    return pa.py_buffer(answer["Body"].read())


@cache
def _s3() -> Any:
    """Return one client per Python worker: making one takes longer than a request."""
    return boto3.client("s3")
