"""Counts of delivered, waiting and failed records that were put: they may have no identity."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cdclake import naming
from cdclake.errors import ComponentFailed
from cdclake.firehose.stream import DeliveryStream
from cdclake.jobs.reader.row_counts import row_count
from cdclake.local.firehose.failed import failed_records, redriven_records
from cdclake.local.firehose.journal import Journal, journal_file
from cdclake.local.firehose.shards import KinesisSource, checkpoints_file
from cdclake.local.lake.lake import LocalLake
from cdclake.local.reader.duck import lake_reader

_POLL_S = 0.5
_MAX_RECORDS_PER_READ = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Counts of one web log or put table.

    With Kinesis `acknowledged` and `dropped` are None: it acknowledges records without a count.
    """

    name: str
    rows: dict[str, int]  # by table
    acknowledged: int | None  # to producers
    waiting: int  # neither in a table nor failed
    failed: int
    dropped: int | None  # by the transform
    redriven: int  # put again by the user, and so acknowledged twice
    last_error: str | None

    @property
    def missing(self) -> int:
        """Count acknowledged records that are nowhere; duplicates may hide some of them."""
        if self.acknowledged is None:
            return 0
        known = self.waiting + sum(self.rows.values()) + self.failed + self.redriven
        return max(0, self.acknowledged - known - (self.dropped or 0))

    def to_json(self, kind: str) -> dict[str, Any]:
        """Return the counts for `status` and `verify`; `kind` is the key of the name."""
        counts = asdict(self)
        return {kind: counts.pop("name"), **counts, "missing": self.missing}


def web_log_figures(lake: LocalLake) -> list[dict[str, Any]]:
    """Count the requests of each web log of the plan now."""
    streams = [logs.stream for logs in lake.plan.web_logs]
    return [figures.to_json("web_logs") for figures in _counted(lake, streams)]


def put_table_figures(lake: LocalLake) -> list[dict[str, Any]]:
    """Count the records of each entry of `puts:` of the plan now."""
    streams = [put.stream for put in lake.plan.puts]
    return [figures.to_json("puts") for figures in _counted(lake, streams)]


def wait_until_settled(lake: LocalLake, wait_s: float) -> None:
    """Wait until no put record waits; raise ComponentFailed after `wait_s` seconds."""
    deadline = time.monotonic() + wait_s
    found = _counted(lake, lake.plan.put_streams)
    while waiting := [each for each in found if each.waiting]:
        if time.monotonic() > deadline:
            raise ComponentFailed(
                f"{waiting[0].waiting} records of {waiting[0].name} were not delivered within"
                f" {wait_s:.0f} s",
                f"read the log {lake.home.log(naming.FIREHOSE_COMPONENT)}, or wait longer",
                component=naming.FIREHOSE_COMPONENT,
            )
        time.sleep(_POLL_S)
        found = _counted(lake, lake.plan.put_streams)


def _counted(lake: LocalLake, streams: Sequence[DeliveryStream]) -> list[Figures]:
    if not streams:
        return []
    journal = Journal(journal_file(lake.home))
    return [_figures(lake, stream, journal) for stream in streams]


def _figures(lake: LocalLake, stream: DeliveryStream, journal: Journal) -> Figures:
    name = naming.delivery_stream_name(lake.plan.name, stream.name)
    is_direct = stream.source == "direct_put"
    # The order matters: a record delivered meanwhile is counted twice rather than missed.
    acknowledged = journal.acknowledged(name) if is_direct else None
    waiting = journal.waiting(name) if is_direct else not_delivered(lake, name)
    failed = failed_records(lake.client("s3"), lake.bucket, stream, name)
    return Figures(
        name=stream.name,
        rows=_rows(lake, stream.tables),
        acknowledged=acknowledged,
        waiting=waiting,
        failed=failed.records if failed else 0,
        dropped=journal.dropped(name) if is_direct else None,
        redriven=redriven_records(lake.client("s3"), lake.bucket, stream, name),
        last_error=str(failed) if failed else None,
    )


def not_delivered(lake: LocalLake, stream: str) -> int:
    """Count the records in Kinesis after the checkpoints by reading them."""
    source = KinesisSource(
        lake.client("kinesis"), stream, checkpoints_file(lake.home, stream), lambda _: None
    )
    count = 0
    while records := source.read(_MAX_RECORDS_PER_READ):
        count += len(records)
    return count


def _rows(lake: LocalLake, tables: Sequence[str]) -> dict[str, int]:
    with lake_reader(lake).open([], plain=tables) as session:
        return {table: row_count(session, table) for table in tables}
