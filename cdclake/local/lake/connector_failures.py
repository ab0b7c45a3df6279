"""Failures of the connector that have a remedy of their own."""

from __future__ import annotations

from cdclake.postgres.quoting import literal

# A transaction began and committed while PostgreSQL waited for older ones to create the slot. It
# does not remember that such a transaction truncated or rewrote a table (seen with 17.11), and
# ends the decoding at the table's next change: at the same place after every restart.
_UNKNOWN_FILE = "could not map filenumber"


def remedy_for(failure: str, slot: str) -> str | None:
    """Return how to repair the failure with this root cause; None if no remedy is known."""
    if _UNKNOWN_FILE in failure:
        return (
            "a table was truncated or rewritten while the slot was being created, and PostgreSQL"
            f" cannot decode its changes: run `SELECT pg_drop_replication_slot({literal(slot)})`"
            " in the source, then `cdclake up`, which takes a new snapshot"
        )
    return None
