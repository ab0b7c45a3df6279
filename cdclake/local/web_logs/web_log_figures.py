"""Counts of delivered, waiting and failed requests of web logs, which have no identity."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from cdclake import naming
from cdclake.errors import ComponentFailed
from cdclake.iceberg.dialect import DUCKDB
from cdclake.local.firehose.failed import failed_records
from cdclake.local.firehose.journal import Journal, journal_file
from cdclake.local.firehose.shards import KinesisSource, checkpoints_file
from cdclake.local.lake.lake import LocalLake
from cdclake.local.reader.duck import lake_reader
from cdclake.web_logs.model import WebLogs

_POLL_S = 0.5
_MAX_RECORDS_PER_READ = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Counts of one web log.

    With Kinesis `acknowledged` is None: Kinesis acknowledges the records and does not count them.
    """

    web_logs: str
    rows: dict[str, int]  # by table
    acknowledged: int | None  # to producers
    waiting: int  # neither in a table nor failed
    failed: int
    last_error: str | None

    @property
    def missing(self) -> int:
        """Count acknowledged requests that are nowhere; duplicates may hide some of them."""
        if self.acknowledged is None:
            return 0
        return max(0, self.acknowledged - self.waiting - sum(self.rows.values()) - self.failed)

    def to_json(self) -> dict[str, Any]:
        """Return the counts for `status` and `verify`."""
        return {**asdict(self), "missing": self.missing}


def web_log_figures(lake: LocalLake) -> list[Figures]:
    """Count the requests of each web log of the plan now."""
    journal = Journal(journal_file(lake.home))
    return [_figures(lake, logs, journal) for logs in lake.plan.web_logs]


def settled_figures(lake: LocalLake, wait_s: float) -> list[Figures]:
    """Wait until no request waits, then count; raise ComponentFailed after `wait_s` seconds."""
    deadline = time.monotonic() + wait_s
    found = web_log_figures(lake)
    while waiting := [each for each in found if each.waiting]:
        if time.monotonic() > deadline:
            raise ComponentFailed(
                f"{waiting[0].waiting} requests of {waiting[0].web_logs} were not delivered within"
                f" {wait_s:.0f} s",
                f"read the log {lake.home.log(naming.FIREHOSE_COMPONENT)}, or wait longer",
                component=naming.FIREHOSE_COMPONENT,
            )
        time.sleep(_POLL_S)
        found = web_log_figures(lake)
    return found


def _figures(lake: LocalLake, logs: WebLogs, journal: Journal) -> Figures:
    name = naming.delivery_stream_name(lake.plan.name, logs.name)
    is_direct = logs.stream.source == "direct_put"
    # The order matters: a request delivered meanwhile is counted twice rather than missed.
    acknowledged = journal.acknowledged(name) if is_direct else None
    waiting = journal.waiting(name) if is_direct else _not_delivered(lake, name)
    failed = failed_records(lake.client("s3"), lake.bucket, logs.stream, name)
    return Figures(
        web_logs=logs.name,
        rows=_rows(lake, logs),
        acknowledged=acknowledged,
        waiting=waiting,
        failed=failed.records if failed else 0,
        last_error=str(failed) if failed else None,
    )


def _not_delivered(lake: LocalLake, stream: str) -> int:
    """Count the records in Kinesis after the checkpoints by reading them."""
    source = KinesisSource(
        lake.client("kinesis"), stream, checkpoints_file(lake.home, stream), lambda _: None
    )
    count = 0
    while records := source.read(_MAX_RECORDS_PER_READ):
        count += len(records)
    return count


def _rows(lake: LocalLake, logs: WebLogs) -> dict[str, int]:
    with lake_reader(lake).open([], plain=logs.tables) as session:
        counted = {}
        for table in logs.tables:
            row = session.execute(f"SELECT count(*) FROM {DUCKDB.name(table)}").fetchone()
            assert row is not None  # an aggregate has a row
            counted[table] = int(row[0])
    return counted
