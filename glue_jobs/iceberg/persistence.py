"""Rows that are held while several queries read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame


@contextmanager
def persisted(rows: DataFrame) -> Iterator[DataFrame]:
    """The rows, evaluated once by the first query and held for as long as the block lasts.

    A merge reads its source more than once (correctness K22). What a lost machine held is
    evaluated again, so `rows` have to come out the same every time.
    """
    rows.cache()
    try:
        yield rows
    finally:
        rows.unpersist()
