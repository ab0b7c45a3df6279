"""What the stream tells the outside: one JSON object in S3, written after every batch.

`status` and `verify` read it: per table the next offset of each Kafka partition, its state, its
last error. A stopped table keeps its resume offsets here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from cdclake import naming
from cdclake.jobs.control.store import ObjectStore

_STORED = "progress.json"
GIVEN_UP = "given up"  # `gap` of a resume request: go on from whatever Kafka still keeps
COLUMNS = "columns"  # `mended` of a resume request: only if these were why the table stopped


@dataclass(slots=True, kw_only=True)
class TableProgress:
    """One table's place in the stream."""

    offsets: dict[int, int] = field(default_factory=dict)
    state: str = "streaming"  # or stopped
    quarantined: int = 0  # refused events since the table last (re)started
    last_error: str | None = None
    resume_requested: bool = False
    # Changes below this position passed the table by; values older than it are still in its state.
    missed_below: str | None = None
    gap_given_up: bool = False  # what Kafka keeps no more; a resync repairs what it held
    columns: list[str] = field(default_factory=list)  # whose declaration its events do not fit
    first_seen: dict[str, str] = field(
        default_factory=dict
    )  # declared columns that events have had
    suspected: list[str] = field(default_factory=list)  # of which the last value did not fit

    def note_refused(self, refused: int, limit: int) -> bool:
        """Count refused events, and stop the table if they are too many; whether it stopped now.

        Its declaration no longer fits its source then.
        """
        self.quarantined += refused
        if self.quarantined <= limit:
            return False
        self.stop(
            f"{self.quarantined} events refused, more than stop_table_after={limit}; see "
            f"{naming.QUARANTINE} for the reasons, mend the cause, then `cdclake resume`"
        )
        return True

    def stop(self, reason: str, columns: Sequence[str] = ()) -> None:
        """The table takes nothing any more, from its offsets on."""
        self.state, self.last_error, self.columns = "stopped", reason, list(columns)
        self.resume_requested = self.gap_given_up = False

    def ask_to_resume(self, request: Mapping[str, Any]) -> None:
        """Have a stopped table read its gap with the next batch; others take no notice."""
        is_for_others = request.get("mended") == COLUMNS and not self.columns
        if self.state == "stopped" and not is_for_others:
            self.resume_requested = True
            self.gap_given_up = request.get("gap") == GIVEN_UP

    def forget_all_but(self, columns: Collection[str]) -> None:
        """What was seen of other columns: one that is declared again is another one."""
        self.first_seen = {key: at for key, at in self.first_seen.items() if key in columns}

    def flow(self) -> None:
        """A stopped table has taken its gap, or a part of it."""
        if self.state == "stopped":
            self.state, self.last_error, self.columns = "streaming", None, []
            self.quarantined, self.resume_requested, self.gap_given_up = 0, False, False


@dataclass(slots=True, kw_only=True)
class Progress:
    """The whole stream's place."""

    query: str = ""
    batch: int = -1
    epoch: int = 0
    written_at: str = ""
    seconds: float = 0.0  # the last batch took
    events: int = 0  # the last batch held
    heartbeat_committed_us: int = (
        0  # commit time of the newest heartbeat that is in; microseconds, 0 if none is
    )
    heartbeat_offsets: dict[int, int] = field(default_factory=dict)
    tables: dict[str, TableProgress] = field(default_factory=dict)

    def table(self, name: str) -> TableProgress:
        """The table's progress, begun if it is new."""
        return self.tables.setdefault(name, TableProgress())

    def offsets(self) -> dict[str, Mapping[int, int]]:
        """Each table's next offsets in its topic, by partition."""
        return {name: table.offsets for name, table in self.tables.items()}

    def save(self, control: ObjectStore) -> None:
        """Write it, with the present time."""
        self.written_at = datetime.now(UTC).isoformat()
        control.write(_STORED, self.to_stored())

    def to_stored(self) -> dict[str, Any]:
        """The stored object's content; `parse` reads it."""
        stored = _stored(self, asdict(self))
        tables = self.tables.items()
        return {
            **stored,
            "tables": {name: _stored(t, stored["tables"][name]) for name, t in tables},
        }

    @staticmethod
    def load(control: ObjectStore) -> Progress:
        """The stored progress, or that of a stream that never ran."""
        stored = control.read(_STORED)
        return Progress.parse(stored.content) if stored else Progress()

    @staticmethod
    def parse(raw: dict[str, Any]) -> Progress:
        """The progress in a stored object's content; what a newer version has added is let go.

        So a deployment can be taken back.
        """
        known = _known(Progress, raw)
        known["tables"] = {name: _parse_table(entry) for name, entry in raw["tables"].items()}
        known["heartbeat_offsets"] = _parse_offsets(raw["heartbeat_offsets"])
        return Progress(**known)


def _parse_table(raw: dict[str, Any]) -> TableProgress:
    known = _known(TableProgress, raw)
    return TableProgress(**{**known, "offsets": _parse_offsets(raw["offsets"])})


# Fields whose keys in the stored object are other ones: those of the first version.
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
