"""Progress of the stream: one JSON object in S3, written after every micro-batch.

`status`, `verify` and the operations read it: per table the next offset of each Kafka partition,
its state and its last error. The resume offsets of a stopped table are stored nowhere else.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from cdclake.control_objects import PROGRESS, RefusedTotals
from cdclake.debezium.position import Position, epoch_start
from cdclake.errors import Fenced
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.control.table_progress import NewlyRefused, TableProgress, parse_offsets
from cdclake.jobs.control.topic_state import SnapshotTopic, TopicState
from cdclake.plan import Plan, Table

# Fields whose stored keys differ from their names: the keys of the first version.
_KEYS = {"heartbeat_committed_us": "beat_us"}
_COMPOUND = ("etag", "refused", "snapshot_topics", "tables")  # stored in their own way, or not


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
    # By name; earlier versions noted none.
    snapshot_topics: dict[str, SnapshotTopic] = field(default_factory=dict)
    tables: dict[str, TableProgress] = field(default_factory=dict)
    # Of all tables, also of removed ones; never lowered, as the numbers of a table are.
    refused: RefusedTotals = field(default_factory=RefusedTotals)
    etag: str | None = field(default=None, compare=False)  # of the stored object, if there is one

    def table(self, name: str) -> TableProgress:
        """Return the table's progress, a fresh one for a new table.

        A table that joins after the epoch's snapshot is read by an incremental one, whose resync
        deletes stale rows.
        """
        return self.tables.setdefault(name, TableProgress(swept=self.complete_snapshot))

    def note_quarantined(self, name: str, refused: NewlyRefused) -> None:
        """Count refused events of a table, before the commit that quarantines them."""
        self.table(name).note_quarantined(refused)
        self.refused = RefusedTotals(
            quarantined=self.refused.quarantined + refused.quarantined,
            withheld=self.refused.withheld + refused.withheld,
        )

    def freshness_s(self, table: str, now: float) -> float | None:
        """Return the age of the newest heartbeat in seconds; `now` is in seconds since 1970.

        None if `reached_us` is.
        """
        reached = self.reached_us(table)
        return None if reached is None else now - reached / 1_000_000

    def reached_us(self, table: str) -> int | None:
        """Return the commit time of the newest heartbeat, in microseconds since 1970.

        None if the table is stopped or not read yet, or before the first heartbeat.
        """
        place = self.tables.get(table)
        if place is None or not place.is_streaming or not self.heartbeat_committed_us:
            return None
        return self.heartbeat_committed_us

    def offsets(self) -> dict[str, Mapping[int, int]]:
        """Return each table's next offsets in its topic, by partition."""
        return {name: table.offsets for name, table in self.tables.items()}

    def note_snapshot(self, topics: Mapping[str, TopicState], now: float) -> None:
        """Note that Kafka has the newest snapshot completely, in these topics.

        Only a topic's id shows that it is the one of before: one that was lost and created again
        may have as many events.
        """
        known = self.snapshot_topics
        self.snapshot_topics = {
            topic: known[topic]
            if topic in known and known[topic].id == state.id
            else SnapshotTopic(state.id, self.epoch)
            for topic, state in topics.items()
        }
        self.complete_snapshot, self.completed_at = self.snapshot, now

    def first_epoch(self, topic: str) -> int:
        """Return the first epoch whose events are known to be in the topic that Kafka has now."""
        if topic in self.snapshot_topics:
            return self.snapshot_topics[topic].since
        if not self.complete_snapshot:
            return self.epoch
        return Position.parse(self.complete_snapshot).epoch

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
            name for name, place in places.items() if place.is_streaming or place.is_due(now)
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
        names = [f.name for f in fields(self) if f.name not in _COMPOUND]
        stored = {_KEYS.get(name, name): deepcopy(getattr(self, name)) for name in names}
        topics = {name: asdict(topic) for name, topic in self.snapshot_topics.items()}
        tables = {name: table.to_stored() for name, table in self.tables.items()}
        refused = self.refused.to_json()
        return {**stored, "refused": refused, "snapshot_topics": topics, "tables": tables}

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
        keys = {_KEYS.get(f.name, f.name): f.name for f in fields(Progress)}
        known = {keys[key]: value for key, value in raw.items() if key in keys}
        known["tables"] = {name: TableProgress.parse(t) for name, t in raw["tables"].items()}
        topics = raw.get("snapshot_topics", {})
        known["snapshot_topics"] = {
            name: SnapshotTopic(topic["id"], topic["since"]) for name, topic in topics.items()
        }
        known["refused"] = RefusedTotals.from_json(raw.get("refused", {}))
        known["heartbeat_offsets"] = parse_offsets(raw["heartbeat_offsets"])
        return Progress(**known)
