"""Backend of the deployed jobs that send requests: source, MSK and lake, from their arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from cdclake.activity import Advance
from cdclake.control_objects import FORGET, REPLAY, RESYNC
from cdclake.debezium.incremental_snapshot import tables_being_read
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.requests import pause_of
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.control.topic_state import lost_records
from cdclake.jobs.operations.source_relations import (
    check_snapshot,
    keep_resynced,
    load_records,
    read_relations,
)
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.reader.job_reader import job_reader
from cdclake.jobs.runtime.arguments import brokers_of
from cdclake.jobs.runtime.connect_offsets import ConnectOffsets
from cdclake.jobs.runtime.kafka import bounds
from cdclake.jobs.runtime.session import open_session
from cdclake.jobs.runtime.source import (
    deployed_dsn,
    is_signalled,
    settled_lsn,
    signal_snapshot,
)
from cdclake.jobs.stream.topic_check import KafkaTopics
from cdclake.plan import Plan, Table
from cdclake.postgres.relations import SourceState

_LAST_OFFSET_RECORDS = 100  # of the connector's offsets: the newest of each key is among them

_REPLAY_TIMEOUT_S = 1800.0
# Reading or rewriting a large table takes hours, and by default a run may take four.
_LONG_TIMEOUT_S = 13000.0


class DeployedBackend:
    """Backend of one deployed pipeline.

    Spark, the reader and the source are opened on first use: only a resync needs them all.
    """

    poll_interval_s = 5.0

    def __init__(self, plan: Plan, arguments: Mapping[str, str], resources: ExitStack) -> None:
        """Open nothing yet; `resources` closes what is opened later."""
        self.control = ObjectStore(arguments["control"])
        self._plan = plan
        self._arguments = arguments
        self._resources = resources

    @property
    def timeouts_s(self) -> Mapping[str, float]:
        """Timeouts by verb: a stream that is just starting needs minutes to read a request.

        One that is scheduled reads none before its next run, which may be hours away.
        """
        replay_s = _LONG_TIMEOUT_S if self._plan.mode == "scheduled" else _REPLAY_TIMEOUT_S
        return {REPLAY: replay_s, RESYNC: _LONG_TIMEOUT_S, FORGET: _LONG_TIMEOUT_S}

    @cached_property
    def _brokers(self) -> Mapping[str, str]:
        return brokers_of(self._arguments)

    @cached_property
    def _spark(self) -> SparkSession:
        return open_session(self._arguments["JOB_NAME"])

    @cached_property
    def _topics(self) -> KafkaTopics:
        return KafkaTopics(self._spark, self._brokers)

    @cached_property
    def _dsn(self) -> str:
        return self._resources.enter_context(deployed_dsn(self._arguments))

    @cached_property
    def _reader(self) -> Reader:
        spill = self._resources.enter_context(TemporaryDirectory())
        return job_reader(self._spark, self._plan, Path(spill))

    def exclusive(self) -> AbstractContextManager[None]:
        """Exclude nothing: Glue runs this job once at a time."""
        return nullcontext()

    def check_running(self) -> None:
        """Raise NotRunning if the stream is paused: otherwise its keeper starts it.

        Requests wait for a stream that starts.
        """
        if (pause := pause_of(self.control)) is not None:
            raise pause

    def check_health(self) -> None:
        """Accept every state: alarms report failed components."""

    def wake_stream(self) -> None:
        """Leave it to the heartbeats to cause the next micro-batch."""

    def check_snapshot(self, table: Table) -> None:
        """Look the table and the connector's role up in the source."""
        check_snapshot(self._dsn, self._plan, table)

    def epoch(self) -> int:
        """Return the epoch of the stream's progress."""
        return Progress.load(self.control).epoch

    def tables_being_read(self) -> frozenset[str]:
        """Return the tables being read, from Connect's offsets topic: MSK Connect has no REST."""
        topic = ConnectOffsets(self._spark, self._brokers, self._arguments["offsets"])
        newest = topic.newest(last_records=_LAST_OFFSET_RECORDS)
        stored = (json.loads(value) for value in newest.values() if value)
        return frozenset(table for offset in stored for table in tables_being_read(offset))

    def has_lost_events(self, table: Table, place: TableProgress) -> bool:
        """Compare what the table has read with what Kafka has."""
        topic = self._topics.states([table.topic]).get(table.topic)
        return topic is not None and lost_records(table.topic, place, topic) is not None

    def newest_position(self, table: Table) -> str | None:
        """Return the greatest position in the changelog; InputError if there is no changelog."""
        return self._reader.newest_position(table)

    def next_notification(self) -> int:
        """Return the end offset of the notification topic."""
        return self._notifications()[1]

    def first_notification(self) -> int:
        """Return the first retained offset of the notification topic."""
        return self._notifications()[0]

    def read_relations(self) -> SourceState:
        """Read the source's catalog."""
        return read_relations(self._dsn, self._plan, load_records(self.control, self._plan))

    def settled_lsn(self) -> int:
        """Read the position of the source's WAL, and wait for commits that are in progress."""
        return settled_lsn(self._dsn)

    def signal_snapshot(self, table: Table, request: str, source: SourceState) -> None:
        """Insert the signal into the source, and record the table."""
        signal_snapshot(self._dsn, [table], request)
        keep_resynced(self.control, source, self._plan, table)

    def reading(self, table: Table) -> Callable[[], Advance | None]:
        """Read nothing: a job shows its progress by its log."""
        return lambda: None

    def is_signalled(self, request: str) -> bool:
        """Look the signal up in the source."""
        return is_signalled(self._dsn, request)

    def check_resumable(self) -> None:
        """Raise NotRunning if the stream is paused: only `cdclake resume` ends a pause."""
        self.check_running()

    def is_paused(self) -> bool:
        """Return False: a paused stream is not resumable by this job."""
        return False

    def start_stream(self) -> None:
        """Leave it to the stream keeper."""

    def _notifications(self) -> tuple[int, int]:
        return bounds(self._spark, self._brokers, self._plan.notification_topic)[0]
