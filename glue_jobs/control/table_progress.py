"""Progress of one table of the stream: its next offsets, its life, and what it remembers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, NamedTuple

from cdclake import naming
from cdclake.backoff import pause_after
from cdclake.control_objects import ResumeRequest
from cdclake.debezium.oversized import remedy
from cdclake.jobs.control.table_life import (
    Held,
    Resuming,
    Stopped,
    Streaming,
    TableLife,
    life_to_stored,
    parse_life,
)

FIRST_RETRY_S, MAX_RETRY_S = 10.0, 300.0  # pauses of a table that is held back
_FIRST_SEEN = "seen"  # stored key of `first_seen`, that of the first version
_INCOMPLETE = (
    "records were lost from Kafka before they were read: rows are missing until `cdclake resync` of"
    " this table is complete"
)


class NewlyRefused(NamedTuple):
    """Numbers of refused events that no batch has counted, and the offsets that follow them."""

    quarantined: int = 0  # without those that a rule withholds
    withheld: int = 0
    through: Mapping[int, int] = {}  # by partition


@dataclass(slots=True, kw_only=True)
class TableProgress:
    """Progress of one table."""

    offsets: dict[int, int] = field(default_factory=dict)
    life: TableLife = field(default_factory=Streaming)
    failures: int = 0  # consecutive tries that ended with an error that may pass
    quarantined: int = 0  # events quarantined since the table last started or resumed
    withheld: int = 0  # events that a rule of the file has withheld; these are not in `quarantined`
    # By partition, next offset after refused events that are counted although their batch has not
    # ended: a batch that runs again does not count them twice.
    counted: dict[int, int] = field(default_factory=dict)
    warning: str | None = None  # why some rows may have older values, until a resync
    # The table may have missed changes below this position; its state has values older than it.
    missed_below: str | None = None
    # By declared column (name and type): position of the first event that has it.
    first_seen: dict[str, str] = field(default_factory=dict)
    suspected: list[str] = field(default_factory=list)  # columns whose last value did not fit
    oversized: str | None = None  # the last event that was too large, until a resync reads its row
    incomplete: str | None = None  # why rows are missing until a resync has read the table
    topic_id: str = ""  # Kafka's id of the topic that the offsets belong to; "": not known yet
    # Ends of the topic when the epoch's snapshot was complete: its rows are before them.
    snapshot_ends: dict[int, int] = field(default_factory=dict)
    # Seconds since 1970; 0: the state has the whole changelog. None: the stream does not apply it.
    state_behind_since: float | None = None
    swept: str = ""  # position of the newest snapshot that has replaced the table's older rows
    # From this position on, the table was read completely by a resync or an epoch's snapshot: rows
    # without a later event are gone from the source. "": it is not known to be complete.
    read_from: str = ""

    def note_oversized(self, table: str, reason: str, *, stops: bool) -> None:
        """Remember an event that was too large for Kafka; stop the table if the policy says so."""
        self.oversized = f"{reason}. To repair the row, {remedy(table)}"
        if stops:
            then = "let it continue with `cdclake resume`"
            self.stop(f"{reason}. To repair the row, {then}, {remedy(table)}")

    def note_quarantined(self, refused: NewlyRefused) -> None:
        """Count refused events, before the commit that quarantines them."""
        self.quarantined += refused.quarantined
        self.withheld += refused.withheld
        for partition, following in refused.through.items():
            self.counted[partition] = max(following, self.counted.get(partition, 0))

    def advance(self, offsets: Mapping[int, int]) -> None:
        """Note the next offsets after a batch."""
        self.offsets.update(offsets)
        self.counted = {p: end for p, end in self.counted.items() if end > self.offsets.get(p, 0)}

    def note_refused(self, refused: int, limit: int) -> bool:
        """Count refused events; stop the table and return True if there are too many."""
        self.quarantined += refused
        return self.stop_if_refusing(limit)

    def note_complete_read(self, position: str) -> None:
        """Note that the table was read completely from this position on."""
        self.read_from = max(self.read_from, position)

    def stop_if_refusing(self, limit: int) -> bool:
        """Stop the table and return True if more events were refused than `limit`.

        So many refused events mean that the declaration no longer matches the source.
        """
        if self.quarantined <= limit:
            return False
        self.stop(
            f"{self.quarantined} events refused, more than stop_table_after={limit}; see "
            f"{naming.QUARANTINE} for the reasons, fix the cause, then run `cdclake resume`",
            refused=True,
        )
        return True

    def keep_offsets(self, ranges: Mapping[int, tuple[int, int]]) -> None:
        """Note where a table that stops has to continue in partitions that it has not read yet."""
        for partition, (first, _) in ranges.items():
            self.offsets.setdefault(partition, first)

    @property
    def is_streaming(self) -> bool:
        """Return whether the table takes part in each batch."""
        return isinstance(self.life, Streaming)

    @property
    def needs_operator(self) -> bool:
        """Return whether the table continues only when an operator resumes it, or does so now."""
        return isinstance(self.life, Stopped | Resuming)

    @property
    def last_error(self) -> str | None:
        """Return why the table does not stream, or what is wrong with its rows."""
        if isinstance(self.life, Streaming):
            return self.incomplete or self.warning
        return self.life.reason

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that stopped the table: they do not fit the events."""
        return self.life.columns if isinstance(self.life, Stopped | Resuming) else ()

    def state_age_s(self, now: float) -> float | None:
        """Return for how many seconds the state has been behind its changelog; 0 if it is not.

        None if another job applies the state.
        """
        since = self.state_behind_since
        return round(max(0.0, now - since), 1) if since else since

    @property
    def skips_gap(self) -> bool:
        """Return whether records that Kafka has deleted are skipped; a resync reads their rows."""
        return isinstance(self.life, Held | Resuming) and self.life.skips_gap

    def stop(self, reason: str, columns: Sequence[str] = (), *, refused: bool = False) -> None:
        """Stop the table at its current offsets."""
        self.life = Stopped(reason=reason, columns=tuple(columns), refused=refused)
        self.failures = 0

    def hold(self, reason: str, now: float) -> None:
        """Stop the table for a pause that grows with each consecutive failure."""
        self.failures += 1
        retry_at = now + pause_after(self.failures, FIRST_RETRY_S, MAX_RETRY_S)
        at = datetime.fromtimestamp(retry_at, UTC).isoformat(sep=" ", timespec="seconds")
        times = f"Failed {self.failures} times in a row; the next try is at {at[:19]} UTC"
        self.life = Held(reason=f"{reason}. {times}", retry_at=retry_at, skips_gap=self.skips_gap)

    def is_due(self, now: float) -> bool:
        """Return True if a table is to be tried now: by request or after its pause."""
        life = self.life
        return isinstance(life, Resuming) or (isinstance(life, Held) and life.retry_at <= now)

    def ask_to_resume(self, request: ResumeRequest) -> None:
        """Let a stopped table read its gap in the next batch; ignore the request otherwise.

        A request for changed columns resumes tables that columns or refused events have stopped. A
        gap that an earlier request lets it skip stays one, since a resync waits for the table.
        """
        is_refusing = isinstance(self.life, Stopped) and self.life.refused
        is_for_others = request.columns_changed and not (self.columns or is_refusing)
        if isinstance(self.life, Streaming) or is_for_others:
            return
        if not isinstance(self.life, Resuming):  # else a batch may have counted some since
            self.quarantined = 0
        skips_gap = request.skip_gap or self.skips_gap
        self.life = Resuming(reason=self.life.reason, columns=self.columns, skips_gap=skips_gap)
        self.failures = 0
        if request.skip_gap and not request.has_snapshot:
            self.incomplete = _INCOMPLETE

    def flow(self) -> None:
        """Let a table stream, once it has read its gap or a part of it.

        Its failures still count: the update of its state, which follows, may fail each time.
        """
        self.life = Streaming()

    def to_stored(self) -> dict[str, Any]:
        """Return the table's entry in the control object; `parse` reads it."""
        names = [f.name for f in fields(self) if f.name != "life"]
        others = {name: deepcopy(getattr(self, name)) for name in names}
        others[_FIRST_SEEN] = others.pop("first_seen")
        return {**others, **life_to_stored(self.life, self.last_error)}

    @staticmethod
    def parse(raw: Mapping[str, Any]) -> TableProgress:
        """Read an entry; ignore keys that a newer version has added."""
        names = {f.name for f in fields(TableProgress)} - {"life"}
        known = {name: raw[name] for name in names if name in raw}
        if _FIRST_SEEN in raw:
            known["first_seen"] = raw[_FIRST_SEEN]
        known["offsets"] = parse_offsets(raw["offsets"])
        known["counted"] = parse_offsets(raw.get("counted", {}))
        known["snapshot_ends"] = parse_offsets(raw.get("snapshot_ends", {}))
        if "read_from" not in raw and raw.get("snapshot_ends"):  # of an earlier version
            # A table that joined later has no ends: that snapshot may not have read it.
            known["read_from"] = raw.get("swept", "")
        life = parse_life(raw)
        if "warning" not in raw and isinstance(life, Streaming):  # of an earlier version
            known["warning"] = raw.get("last_error")
        return TableProgress(life=life, **known)


def parse_offsets(raw: Mapping[str, int]) -> dict[int, int]:
    """Read next offsets by partition: keys of JSON objects are texts."""
    return {int(partition): offset for partition, offset in raw.items()}
