"""Point in time of a query (`--at`): now, a timestamp, or one table's snapshot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from cdclake.errors import InputError
from cdclake.jobs.reader.catalog import CatalogTable, TableSnapshot
from cdclake.time_spans import parse_time


@dataclass(frozen=True, slots=True)
class Moment:
    """Time in milliseconds, None for now; `snapshot` overrides it for the table that has it."""

    milliseconds: int | None = None
    snapshot: int | None = None

    def of(self, table: CatalogTable) -> TableSnapshot | None:
        """Return the table's snapshot at this point in time; None before its first snapshot."""
        if self.milliseconds is None:
            return table.current
        if self.snapshot is not None and self.snapshot in table.snapshots:
            return table.snapshots[self.snapshot]
        return table.at_time(self.milliseconds)


NOW = Moment()


def snapshot_id(text: str) -> int | None:
    """Parse the snapshot id of `--at`; None if it is a time."""
    return int(text) if text.strip().isdigit() else None


def at_time(text: str) -> Moment:
    """Parse the time of `--at`, in UTC unless it has a zone; raise InputError if it is invalid."""
    wrong = f"--at {text!r} is neither a time nor a snapshot id"
    remedy = "write a time like 2026-11-21T14:30:00Z or -5m, or a snapshot id"
    time = past_time(text, "--at", wrong, remedy)
    return Moment(milliseconds=int(time.timestamp() * 1000))


def past_time(text: str, option: str, wrong: str, remedy: str) -> datetime:
    """Parse the time of an option: relative to now, or ISO 8601 in UTC unless it has a zone.

    Raises InputError: with `wrong` and `remedy` if it is none, and if it is in the future.
    """
    now = datetime.now(UTC)
    time = parse_time(text, now)
    if time is None:
        raise InputError(wrong, remedy)
    if time > now:
        raise InputError(
            f"{option} {text!r} is in the future: it is {now.isoformat(timespec='seconds')}",
            f"leave out {option} for the newest state",
        )
    return time


def at_snapshot(number: int, tables: Iterable[CatalogTable]) -> Moment:
    """Return the point in time of a snapshot; raise InputError if no table has it."""
    for table in tables:
        if number in table.snapshots:
            return Moment(table.snapshots[number].committed_ms, number)
    raise InputError(
        f"no table of the lake has a snapshot {number}",
        "it may have expired; use a time instead",
    )
