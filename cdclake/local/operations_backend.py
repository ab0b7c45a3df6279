"""Backend of the operations in the local lake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from cdclake.activity import Advance
from cdclake.control_objects import FORGET, REPLAY, RESYNC
from cdclake.errors import ComponentFailed, NotRunning
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.control.topic_state import lost_records
from cdclake.jobs.operations.source_relations import (
    check_snapshot,
    keep_resynced,
    load_records,
    read_relations,
)
from cdclake.jobs.operations.table_operations import TableOperations
from cdclake.jobs.runtime.source import (
    is_signalled,
    settled_lsn,
    signal_snapshot,
    write_marker,
)
from cdclake.local.firehose import component
from cdclake.local.lake import stack
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.connector_failures import remedy_for
from cdclake.local.lake.lake import LakeState, LocalLake
from cdclake.local.lake.load_advance import reading_from_now
from cdclake.local.lake.spark_jobs import STREAM, stream_spec
from cdclake.local.lake.topics import end_offsets, read_messages, topic_state
from cdclake.local.reader.table_figures import last_position
from cdclake.plan import Table
from cdclake.postgres.relations import SourceState

TIMEOUTS_S = {REPLAY: 300.0, RESYNC: 3600.0, FORGET: 3600.0}
_STREAM_START_TIMEOUT_S = 300.0  # a cold JVM on a busy machine; an idle one takes a tenth
_POLL_INTERVAL_S = 0.3


@dataclass(frozen=True, slots=True)
class LocalBackend:
    """One local lake's source, connector and stream."""

    lake: LocalLake
    timeouts_s: Mapping[str, float] = field(default_factory=lambda: TIMEOUTS_S)
    poll_interval_s: float = _POLL_INTERVAL_S

    @property
    def control(self) -> ObjectStore:
        """The lake's control objects."""
        return self.lake.control

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the lock of the lake's home."""
        return self.lake.home.changing()

    def check_running(self) -> None:
        """Raise NotRunning if the stream is paused or a component is down."""
        if self.lake.state.paused:
            raise NotRunning("the stream is paused", "run `cdclake resume`, then this again")
        for name, state in self._not_alive().items():
            raise NotRunning(f"{name} is {state}", "run `cdclake up`, then this again")

    def check_health(self) -> None:
        """Raise ComponentFailed if a component is down or the connector failed."""
        for name, state in self._not_alive().items():
            raise ComponentFailed(
                f"{name} is {state}",
                "run `cdclake up`; the request is still pending",
                component=name,
            )
        failure = self._connector().failure()
        if failure is not None:
            known = remedy_for(failure, self.lake.plan.source_object)
            raise ComponentFailed(
                f"the connector failed: {failure}",
                known or "fix the cause and run `cdclake up`; the request is still pending",
                component="connect",
            )

    def wake_stream(self) -> None:
        """Write a marker into the source, which the stream reads at once."""
        write_marker(self.lake.dsn)

    def check_snapshot(self, table: Table) -> None:
        """Look the table and the connector's role up in the source."""
        check_snapshot(self.lake.dsn, self.lake.plan, table)

    def epoch(self) -> int:
        """Return the epoch that `up` has begun, even if the stream has not reached it."""
        return self.lake.state.epoch

    def tables_being_read(self) -> frozenset[str]:
        """Return the tables being read, from Connect's REST interface."""
        return self._connector().reading()

    def has_lost_events(self, table: Table, place: TableProgress) -> bool:
        """Compare what the table has read with what Kafka has."""
        topic = topic_state(self.lake.kafka, table.topic)
        return topic is not None and lost_records(table.topic, place, topic) is not None

    def newest_position(self, table: Table) -> str | None:
        """Return the greatest position in the changelog, None without changelog or rows."""
        return last_position(self.lake, table)

    def next_notification(self) -> int:
        """Return the end offset of the notification topic."""
        topic = self.lake.plan.notification_topic
        return end_offsets(self.lake.kafka, [topic])[topic][0]

    def first_notification(self) -> int:
        """Return the first retained offset of the notification topic."""
        topic = self.lake.plan.notification_topic
        first, _ = read_messages(self.lake.kafka, topic, self.next_notification())
        return first

    def read_relations(self) -> SourceState:
        """Read the source's catalog."""
        return read_relations(
            self.lake.dsn, self.lake.plan, load_records(self.control, self.lake.plan)
        )

    def settled_lsn(self) -> int:
        """Read the position of the source's WAL, and wait for commits that are in progress."""
        return settled_lsn(self.lake.dsn)

    def signal_snapshot(self, table: Table, request: str, source: SourceState) -> None:
        """Insert the signal into the source, and record the table."""
        signal_snapshot(self.lake.dsn, [table], request)
        keep_resynced(self.control, source, self.lake.plan, table)

    def reading(self, table: Table) -> Callable[[], Advance | None]:
        """Return a function that reads the rows that the lake has processed from now on."""
        return reading_from_now(self.lake, table)

    def is_signalled(self, request: str) -> bool:
        """Look the signal up in the source."""
        return is_signalled(self.lake.dsn, request)

    def check_resumable(self) -> None:
        """Raise NotRunning while `up` has to start the connector or complete the bulk load."""
        if self.lake.state.bare and self.lake.plan.tables:
            raise NotRunning("the lake was started without its connector", "run `cdclake up` first")
        if self.lake.state.loading:
            raise NotRunning("the bulk load is not complete", "run `cdclake up`")

    def is_paused(self) -> bool:
        """Return True after `pause`."""
        return self.lake.state.paused

    def start_stream(self) -> None:
        """Start the stream and the Firehose stand-in, and forget the pause."""
        LakeState.set_paused(self.lake.home, paused=False)
        if self.lake.plan.tables:
            run_stream(self.lake, _STREAM_START_TIMEOUT_S)
        component.run(self.lake)

    def _connector(self) -> ConnectorClient:
        return ConnectorClient(self.lake.endpoints.connect, self.lake.plan)

    def _not_alive(self) -> dict[str, str]:
        """Return the components that a request needs and that are down, with their state."""
        states = {part["name"]: part["state"] for part in stack.components(self.lake.home)}
        needed = {name: states.get(name, "stopped") for name in ("kafka", "connect", "aws", STREAM)}
        return {n: state for n, state in needed.items() if state not in ("running", "starting")}


def local_operations(lake: LocalLake) -> TableOperations:
    """Return the operations of a local lake."""
    return TableOperations(LocalBackend(lake))


def to_json(answers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON answer of a command from its answers by table."""
    return {"ok": True, "tables": [{"table": name, **each} for name, each in answers.items()]}


def run_stream(lake: LocalLake, timeout_s: float) -> None:
    """Run the stream, or run it again if it is dead or its command has changed."""
    lake.home.private_data("checkpoints")
    stack.run_component(lake.home, stream_spec(lake), lambda: True, timeout_s)
