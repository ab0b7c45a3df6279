"""Progress of the stream: one JSON object in S3, written after every micro-batch.

`status`, `verify` and the operations read it: per table the next offset of each Kafka partition,
its state and its last error. The resume offsets of a stopped table are stored nowhere else.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from cdclake import naming
from cdclake.backoff import pause_after
from cdclake.control_objects import PROGRESS, ResumeRequest
from cdclake.debezium.oversized import remedy
from cdclake.debezium.position import epoch_start
from cdclake.errors import Fenced
from cdclake.jobs.control.store import ObjectStore
from cdclake.plan import Plan, Table

FIRST_RETRY_S, MAX_RETRY_S = 10.0, 300.0  # pauses of a table that is held back
_INCOMPLETE = (
    "records were lost from Kafka before they were read: rows are missing until `cdclake resync` of"
    " this table is complete"
)


@dataclass(slots=True, kw_only=True)
class TableProgress:
    """Progress of one table."""

    offsets: dict[int, int] = field(default_factory=dict)
    state: str = "streaming"  # or stopped
    quarantined: int = 0  # events quarantined since the table last started or resumed
    last_error: str | None = None
    resume_requested: bool = False
    failures: int = 0  # consecutive tries that ended with an error that may pass
    retry_at: float = 0.0  # of a table that is stopped until then (seconds since 1970); 0: for good
    # The table missed changes below this position; its state still has values older than it.
    missed_below: str | None = None
    gap_given_up: bool = False  # skip expired events; a resync restores their rows
    columns: list[str] = field(default_factory=list)  # why it stopped: they do not fit the events
    # By declared column (name and type): position of the first event that has it.
    first_seen: dict[str, str] = field(default_factory=dict)
    suspected: list[str] = field(default_factory=list)  # columns whose last value did not fit
    oversized: str | None = None  # the last event that was too large, until a resync reads its row
    incomplete: str | None = None  # why rows are missing until a resync has read the table
    topic_id: str = ""  # Kafka's id of the topic that the offsets belong to; "": not known yet
    # Ends of the topic when the epoch's snapshot was complete: its rows are before them.
    snapshot_ends: dict[int, int] = field(default_factory=dict)
    swept: str = ""  # position of the newest snapshot that has replaced the table's older rows

    def note_oversized(self, table: str, reason: str, *, stops: bool) -> None:
        """Remember an event that was too large for Kafka; stop the table if the policy says so."""
        self.oversized = f"{reason}. To repair the row, {remedy(table)}"
        if stops:
            then = "let it continue with `cdclake resume`"
            self.stop(f"{reason}. To repair the row, {then}, {remedy(table)}")

    def note_refused(self, refused: int, limit: int) -> bool:
        """Count refused events; stop the table and return True if there are too many.

        So many refused events mean that the declaration no longer matches the source.
        """
        self.quarantined += refused
        if self.quarantined <= limit:
            return False
        self.stop(
            f"{self.quarantined} events refused, more than stop_table_after={limit}; see "
            f"{naming.QUARANTINE} for the reasons, fix the cause, then run `cdclake resume`"
        )
        return True

    def keep_offsets(self, ranges: Mapping[int, tuple[int, int]]) -> None:
        """Note where a table that stops has to continue in partitions that it has not read yet."""
        for partition, (first, _) in ranges.items():
            self.offsets.setdefault(partition, first)

    def stop(self, reason: str, columns: Sequence[str] = ()) -> None:
        """Stop the table at its current offsets."""
        self.state, self.last_error, self.columns = "stopped", reason, list(columns)
        self.resume_requested = self.gap_given_up = False
        self.failures, self.retry_at = 0, 0.0

    def hold(self, reason: str, now: float) -> None:
        """Stop the table for a pause that grows with each consecutive failure."""
        failures, gap_given_up = self.failures + 1, self.gap_given_up
        retry_at = now + pause_after(failures, FIRST_RETRY_S, MAX_RETRY_S)
        at = datetime.fromtimestamp(retry_at, UTC).isoformat(sep=" ", timespec="seconds")
        self.stop(f"{reason}. Failed {failures} times in a row; the next try is at {at[:19]} UTC")
        self.failures, self.retry_at, self.gap_given_up = failures, retry_at, gap_given_up

    def is_stopped_for_good(self) -> bool:
        """Return True if the table only continues when an operator resumes it."""
        return self.state == "stopped" and not self.retry_at

    def is_due(self, now: float) -> bool:
        """Return True if a stopped table is to be tried now: by request or after its pause."""
        return self.resume_requested or 0 < self.retry_at <= now

    def ask_to_resume(self, request: ResumeRequest) -> None:
        """Let a stopped table read its gap in the next batch; ignore the request otherwise."""
        is_for_others = request.columns_changed and not self.columns
        if self.state == "stopped" and not is_for_others:
            self.resume_requested = True
            self.gap_given_up = request.skip_gap
            if request.skip_gap and not request.has_snapshot:
                self.incomplete = _INCOMPLETE

    def forget_all_but(self, columns: Collection[str]) -> None:
        """Drop other columns from `first_seen`: a column that is declared again is a new one."""
        self.first_seen = {key: at for key, at in self.first_seen.items() if key in columns}

    def flow(self) -> None:
        """Set a stopped table to streaming, once it has read its gap or a part of it."""
        if self.state == "stopped":
            self.state, self.last_error, self.columns = "streaming", self.incomplete, []
            self.resume_requested = self.gap_given_up = False
            # A service's failure says nothing about the events that were refused before it.
            self.quarantined = self.quarantined if self.retry_at else 0
        self.failures, self.retry_at = 0, 0.0


@dataclass(slots=True, kw_only=True)
class Progress:
    """Progress of the stream."""

    query: str = ""
    batch: int = -1
    epoch: int = 0
    written_at: str = ""
    stream: str = ""  # the stream that writes it: a random id
    seconds: float = 0.0  # duration of the last batch
    events: int = 0  # in the last batch
    heartbeat_committed_us: int = 0  # commit time of the newest heartbeat, in microseconds; 0: none
    heartbeat_offsets: dict[int, int] = field(default_factory=dict)
    snapshot: str = ""  # position at which the newest snapshot of an epoch begins
    streaming_since_ms: int = 0  # first streamed heartbeat after it, by the connector's clock; or 0
    complete_snapshot: str = ""  # position of the newest snapshot that Kafka has completely
    completed_at: float = 0.0  # when the stream noticed that (seconds since 1970)
    tables: dict[str, TableProgress] = field(default_factory=dict)
    etag: str | None = field(default=None, compare=False)  # of the stored object, if there is one

    def table(self, name: str) -> TableProgress:
        """Return the table's progress, a fresh one for a new table.

        A table that joins after the epoch's snapshot is read by an incremental one, whose resync
        deletes stale rows.
        """
        return self.tables.setdefault(name, TableProgress(swept=self.complete_snapshot))

    def offsets(self) -> dict[str, Mapping[int, int]]:
        """Return each table's next offsets in its topic, by partition."""
        return {name: table.offsets for name, table in self.tables.items()}

    def is_replacing(self, table: Table, epoch: int) -> bool:
        """Return whether the table still has rows that the snapshot of the epoch replaces.

        Firehose's tables have them until `apply_changes` runs; here only the snapshot counts.
        """
        place = self.tables.get(table.name, TableProgress())
        done = self.complete_snapshot if table.delivery == "firehose" else place.swept
        return epoch > 1 and done < str(epoch_start(epoch))

    def flowing(self, plan: Plan, now: float) -> frozenset[str]:
        """Return the stream's tables without those that are stopped and not being resumed."""
        places = {t.name: self.table(t.name) for t in plan.tables if t.delivery == "stream"}
        return frozenset(
            name for name, place in places.items() if place.state != "stopped" or place.is_due(now)
        )

    def save(self, control: ObjectStore) -> None:
        """Write the control object, with the current time.

        Raise Fenced, with nothing written, if another stream has written it since it was read.
        """
        self.written_at = datetime.now(UTC).isoformat()
        self._write(control)

    def _write(self, control: ObjectStore) -> None:
        content = self.to_stored()
        etag = control.write_if(PROGRESS, content, self.etag)
        if etag is None:
            stored = control.read(PROGRESS)
            if stored is None or stored.content != json.loads(json.dumps(content)):
                raise Fenced(
                    f"another stream has written {PROGRESS} since this one read it",
                    "run one stream per lake; after a restart, this one continues where the other"
                    " is",
                )
            etag = stored.etag  # the write took effect, but its answer was lost
        self.etag = etag

    def take_over(self, control: ObjectStore) -> None:
        """Write the object in the name of a new stream: an earlier one that is still alive ends.

        The time stays that of the last batch. S3's ETag follows the content, which the id changes.
        """
        self.stream = uuid.uuid4().hex
        if self.etag is not None:
            self._write(control)

    def to_stored(self) -> dict[str, Any]:
        """Return the content of the control object; `parse` reads it."""
        stored = _stored(self, asdict(self))
        del stored["etag"]
        tables = self.tables.items()
        return {
            **stored,
            "tables": {name: _stored(t, stored["tables"][name]) for name, t in tables},
        }

    @staticmethod
    def load(control: ObjectStore) -> Progress:
        """Return the stored progress, or an empty one if the stream never ran."""
        stored = control.read(PROGRESS)
        if stored is None:
            return Progress()
        progress = Progress.parse(stored.content)
        progress.etag = stored.etag
        return progress

    @staticmethod
    def parse(raw: dict[str, Any]) -> Progress:
        """Parse the content of the control object.

        Ignore keys that a newer version has added, so that a deployment can be rolled back.
        """
        known = _known(Progress, raw)
        known["tables"] = {name: _parse_table(entry) for name, entry in raw["tables"].items()}
        known["heartbeat_offsets"] = _parse_offsets(raw["heartbeat_offsets"])
        return Progress(**known)


def _parse_table(raw: dict[str, Any]) -> TableProgress:
    known = _known(TableProgress, raw)
    known["offsets"] = _parse_offsets(raw["offsets"])
    known["snapshot_ends"] = _parse_offsets(raw.get("snapshot_ends", {}))
    return TableProgress(**known)


# Fields whose stored keys differ from their names: the keys of the first version.
_KEYS: Mapping[type, Mapping[str, str]] = {
    Progress: {"heartbeat_committed_us": "beat_us"},
    TableProgress: {"first_seen": "seen"},
}


def _stored(progress: Progress | TableProgress, values: dict[str, Any]) -> dict[str, Any]:
    keys = _KEYS[type(progress)]
    return {keys.get(name, name): value for name, value in values.items()}


def _known(kind: type[Progress | TableProgress], raw: dict[str, Any]) -> dict[str, Any]:
    keys = {_KEYS[kind].get(field.name, field.name): field.name for field in fields(kind)}
    return {keys[key]: value for key, value in raw.items() if key in keys}


def _parse_offsets(raw: dict[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in raw.items()}
