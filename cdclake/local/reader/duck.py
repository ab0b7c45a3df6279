"""DuckDB reader of a local lake."""

from __future__ import annotations

from cdclake.jobs.reader.duck import Reader
from cdclake.local.lake.lake import LocalLake


def lake_reader(lake: LocalLake) -> Reader:
    """Create the reader of a running lake."""
    return Reader(
        plan=lake.plan,
        s3=lake.s3,
        glue=lake.glue,
        bucket=lake.bucket,
        spill=lake.home.data("reader"),
        control=lake.control,
    )
