"""Metrics of the stream, published once a minute by the thread that waits for its end.

A scheduled stream publishes freshness and stopped tables only at the end of a run: until a batch
has ended, they are those of the previous run, which may be hours old. At the end of a run a table
whose last try failed counts as stopped: the next run, which tries it again, may be days away.
Publishing does not delay a batch: the values come from the progress object that batches write.
Refused events are published at least once: what is published is noted after CloudWatch has accepted
it, in a control object that outlives the process.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from cdclake import metrics
from cdclake.control_objects import PUBLISHED, RefusedTotals
from cdclake.jobs.control.last_verified import read_verified
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.runtime.metrics import Metrics, Values
from cdclake.jobs.stream.table_gauges import table_lines, write_lines

log = logging.getLogger("cdclake.stream")

PUBLISH_INTERVAL_S = 60.0
FAILURES_TO_REPORT = 5  # consecutive failures of a table, about three minutes of them
_MICROS = 1_000_000


class StreamGauges:
    """Publisher of one stream's progress, and of its changes since the last publication."""

    def __init__(
        self,
        control: ObjectStore,
        published: Metrics,
        tables_of: str | None = None,
        *,
        is_scheduled: bool = False,
    ) -> None:
        """With `tables_of`, the deployment's name, also write metrics of each table."""
        self._control, self._tables_of = control, tables_of
        self._published, self._is_scheduled = published, is_scheduled
        self._gathered = RefusedTotals()
        self._reported: RefusedTotals | None = None  # None: not read yet
        self._noted: RefusedTotals | None = None  # what the control object has
        self._due = 0.0

    def publish_if_due(self, query_progress: Mapping[str, Any] | None) -> None:
        """Publish, unless the last publication was less than a minute ago."""
        if time.time() >= self._due:
            self._due = time.time() + PUBLISH_INTERVAL_S
            self.publish(query_progress, is_end=False)

    def publish(self, query_progress: Mapping[str, Any] | None, *, is_end: bool = True) -> None:
        """Publish now; `query_progress` is Spark's report of the last batch, if there was one."""
        is_current = is_end or not self._is_scheduled
        self._published.publish(
            lambda: self._gather(query_progress, is_current), self._note_published
        )
        if self._tables_of is not None:
            self._publish_tables(self._tables_of)

    def _publish_tables(self, deployment: str) -> None:
        """Write the tables' metrics; S3 may fail for a while, and the next minute tries again."""
        try:
            progress, verified = Progress.load(self._control), read_verified(self._control)
        except (BotoCoreError, ClientError) as error:
            log.warning("metrics of the tables could not be written: %s", error)
            return
        write_lines(table_lines(deployment, progress, verified, time.time()))

    def _gather(self, query_progress: Mapping[str, Any] | None, is_current: bool) -> Values:
        progress, now = Progress.load(self._control), time.time()
        reported, self._gathered = self._read_reported(), progress.refused
        values = {
            metrics.BATCH_SECONDS: progress.seconds,
            metrics.BATCH_EVENTS: progress.events,
            metrics.QUARANTINED: _increase(reported.quarantined, progress.refused.quarantined),
            metrics.WITHHELD: _increase(reported.withheld, progress.refused.withheld),
        }
        ages = [table.state_age_s(now) for table in progress.tables.values()]
        if known := [age for age in ages if age is not None]:
            values[metrics.STATE_AGE] = max(known)
        if progress.written_at:
            ended = datetime.fromisoformat(progress.written_at).timestamp()
            values[metrics.BATCH_AGE] = now - ended
        if is_current:
            values[metrics.STOPPED_TABLES] = sum(map(self._is_stopped, progress.tables.values()))
        if is_current and progress.heartbeat_committed_us:
            values[metrics.FRESHNESS] = now - progress.heartbeat_committed_us / _MICROS
        lag = records_behind(query_progress)
        return values if lag is None else {**values, metrics.LAG: lag}

    def _is_stopped(self, table: TableProgress) -> bool:
        """Return True for a table that an operator must look at: not while a short failure passes.

        Nothing tries a table again between the runs of a scheduled stream.
        """
        reported = 1 if self._is_scheduled else FAILURES_TO_REPORT
        return table.needs_operator or table.failures >= reported

    def _read_reported(self) -> RefusedTotals:
        """Return the published totals: those of the previous run before this one has published."""
        if self._reported is None:
            stored = self._control.read(PUBLISHED)
            content = {} if stored is None else stored.content
            self._reported = self._noted = RefusedTotals.from_json(content)
        return self._reported

    def _note_published(self) -> None:
        """Note what CloudWatch has accepted; S3 is written only after refused events."""
        self._reported = self._gathered
        if self._noted != self._reported:
            self._control.write(PUBLISHED, self._reported.to_json())
            self._noted = self._reported


def records_behind(query_progress: Mapping[str, Any] | None) -> int | None:
    """Return the consumer lag of the topic with the greatest lag, from Spark's Kafka source.

    >>> records_behind({"sources": [{"metrics": {"maxOffsetsBehindLatest": "7"}}]})
    7
    >>> records_behind({"sources": [{}]}) is None
    True
    """
    sources = (query_progress or {}).get("sources", [])
    lags = [(source.get("metrics") or {}).get("maxOffsetsBehindLatest") for source in sources]
    return max((int(lag) for lag in lags if lag is not None), default=None)


def _increase(before: int, now: int) -> int:
    """Return the growth of a total, which restarts at zero if the progress was lost."""
    return now - before if now >= before else now
