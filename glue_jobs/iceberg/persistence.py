"""Cached rows for several queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame


@contextmanager
def persisted(rows: DataFrame) -> Iterator[DataFrame]:
    """Cache the rows inside the block: the first query evaluates them.

    A merge reads its source more than once (correctness K22). Partitions of a lost executor are
    evaluated again, so `rows` must be deterministic.
    """
    rows.cache()
    try:
        yield rows
    finally:
        rows.unpersist()
