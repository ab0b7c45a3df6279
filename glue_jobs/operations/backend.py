"""Interface to the source, the connector and the stream, as the operations need it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from cdclake.activity import Advance
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.plan import Table
from cdclake.postgres.relations import SourceState


class Backend(Protocol):
    """Interface of the operations to a pipeline: `DeployedBackend` on AWS, or `LocalBackend`."""

    @property
    def control(self) -> ObjectStore:
        """The control objects."""

    @property
    def timeouts_s(self) -> Mapping[str, float]:
        """Timeout of the wait for an outcome, by verb."""

    @property
    def poll_interval_s(self) -> float:
        """Pause between two looks at the control objects."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Exclude other commands that change the lake while requests are written."""

    def check_running(self) -> None:
        """Raise NotRunning if nothing would carry out a request."""

    def check_health(self) -> None:
        """Raise ComponentFailed if a component failed that a pending request needs."""

    def wake_stream(self) -> None:
        """Cause a micro-batch now, if the backend can."""

    # --- resync ---

    def check_snapshot(self, table: Table) -> None:
        """Raise InputError if a new snapshot of the table would not have exactly its rows."""

    def epoch(self) -> int:
        """Return the current epoch."""

    def tables_being_read(self) -> frozenset[str]:
        """Return the source tables that an incremental snapshot reads, or is going to read."""

    def has_lost_events(self, table: Table, place: TableProgress) -> bool:
        """Return True if Kafka lacks events of the table that it has not read."""

    def newest_position(self, table: Table) -> str | None:
        """Return the greatest position in the changelog, None if it is empty."""

    def next_notification(self) -> int:
        """Return the offset that the connector's next notification will have."""

    def first_notification(self) -> int:
        """Return the offset of the connector's first notification that Kafka has not deleted."""

    def read_relations(self) -> SourceState:
        """Read the source's relations as they are before a resync."""

    def settled_lsn(self) -> int:
        """Return the LSN that the source's WAL has reached, once commits up to it are visible."""

    def signal_snapshot(self, table: Table, request: str, source: SourceState) -> None:
        """Signal the connector to read the table again, under the request's id.

        Record the table as it is in `source`.
        """

    def reading(self, table: Table) -> Callable[[], Advance | None]:
        """Return a function that reads the progress of the reading that begins now."""

    def is_signalled(self, request: str) -> bool:
        """Return True if the connector got a signal under this id."""

    # --- resume ---

    def check_resumable(self) -> None:
        """Raise NotRunning if the stream cannot be started again."""

    def is_paused(self) -> bool:
        """Return True if `pause` has stopped the stream."""

    def start_stream(self) -> None:
        """Start the stream if it is paused or dead."""
