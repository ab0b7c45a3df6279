"""Temporary views, so that SQL text can refer to a DataFrame."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame


@contextmanager
def viewed(rows: DataFrame) -> Iterator[str]:
    """Create a temporary view with a unique name inside the block."""
    name = f"rows_{uuid.uuid4().hex}"
    rows.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        rows.sparkSession.catalog.dropTempView(name)
