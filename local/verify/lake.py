"""`verify` of a running lake."""

from __future__ import annotations

from glue_jobs.ingest.progress import Progress
from local.lake import Lake
from local.reader.duck import lake_reader
from local.verify.arrival import Arrival
from local.verify.report import Report
from local.verify.run import chosen_tables, verify_tables


def verify_lake(
    lake: Lake, wait_s: float = 120.0, table: str | None = None, sample: int | None = None
) -> Report:
    """Compare the lake's tables, or the one named, with their source."""
    control = lake.control
    arrival = Arrival(
        plan=lake.plan,
        dsn=lake.dsn,
        kafka=lake.kafka,
        progress=lambda: Progress.load(control),
        wait_s=wait_s,
    )
    return verify_tables(
        lake.plan,
        chosen_tables(lake.plan, table),
        dsn=lake.dsn,
        salt=lake.mask_salt,
        reader=lake_reader(lake),
        wait=arrival.wait,
        sample=sample,
    )
