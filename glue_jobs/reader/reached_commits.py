"""Warnings of `--as-of TIME` for changelogs that may not have all commits until that time yet."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from cdclake.jobs.control.poll_state import read_poll
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.store import ObjectStore
from cdclake.plan import Table


def missing_commits(
    control: ObjectStore, tables: Iterable[Table], micros: int
) -> tuple[dict[str, str], ...]:
    """Return a warning for each table whose changelog has not reached that commit time.

    The control objects are read before the changelogs, so these have at least what is stated.
    """
    progress = Progress.load(control)
    reached = ((table.name, _reached_us(table, control, progress)) for table in tables)
    return tuple(_warning(name, at) for name, at in reached if at is None or at < micros)


def _reached_us(table: Table, control: ObjectStore, progress: Progress) -> int | None:
    """Return the commit time until which the changelog has everything; None if it is unknown."""
    if table.delivery == "poll":
        poll = read_poll(control, table)
        return None if poll is None else poll.read_at
    return progress.reached_us(table.name) if table.delivery == "stream" else None


def _warning(name: str, reached_us: int | None) -> dict[str, str]:
    if reached_us is None:
        message = f"{name}: it is not known whether the changelog has all commits until that time"
    else:
        at = datetime.fromtimestamp(reached_us / 1e6, UTC).isoformat(timespec="seconds")
        message = f"{name}: the changelog has the commits until {at}; later ones may be missing"
    remedy = (
        "ask for an earlier time, or again later; `cdclake status` shows how far a table is, except"
        " with `delivery: firehose`"
    )
    return {"message": message, "remedy": remedy}
