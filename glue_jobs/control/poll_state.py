"""Last poll of a polled table, as `status` and `up` read it."""

from __future__ import annotations

from typing import Any

from cdclake.control_objects import PollProgress, poll_error_name, poll_name
from cdclake.jobs.control.store import ObjectStore
from cdclake.plan import Table


def read_poll(control: ObjectStore, table: Table) -> PollProgress | None:
    """Return the table's last poll; None before the first."""
    stored = control.read(poll_name(table.name))
    return None if stored is None else PollProgress.from_json(stored.content)


def read_poll_error(control: ObjectStore, table: Table) -> str | None:
    """Return why the table's last poll failed; None if it did not."""
    stored = control.read(poll_error_name(table.name))
    return None if stored is None else str(stored.content["error"])


def poll_figures(found: PollProgress | None, error: str | None, now: float) -> dict[str, Any]:
    """Return a polled table's state, error and last poll as `status` shows them.

    Ages are in seconds at `now`, seconds since 1970.
    """
    shown = found and {
        "age_s": round(max(0.0, now - found.read_at / 1e6), 1),
        "swept_age_s": round(max(0.0, now - found.swept_at / 1e6), 1),
        "refused": found.refused,
    }
    return {
        "state": "loading" if found is None else "polling",
        "last_error": error,
        "state_age_s": 0.0,  # a poll updates the state with its rows
        "polled": shown,
    }
