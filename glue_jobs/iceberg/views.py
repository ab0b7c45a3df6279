"""Temporary views, by which SQL text names a DataFrame."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame


@contextmanager
def viewed(rows: DataFrame) -> Iterator[str]:
    """A temporary view of a name that no other thread uses, for as long as the block lasts."""
    name = f"rows_{uuid.uuid4().hex}"
    rows.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        rows.sparkSession.catalog.dropTempView(name)
