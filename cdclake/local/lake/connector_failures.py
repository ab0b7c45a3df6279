"""Failures of the connector that have a remedy of their own."""

from __future__ import annotations

from cdclake.postgres.quoting import literal

# A transaction began and committed while PostgreSQL waited for older ones to create the slot. It
# does not remember that such a transaction truncated or rewrote a table (seen with 17.11), and
# ends the decoding at the table's next change: at the same place after every restart.
_UNKNOWN_FILE = "could not map filenumber"

# Debezium compares the columns when it starts, and again those that each change had.
_TWIN_COLUMNS = "has columns that differ only by case"


def remedy_for(failure: str, slot: str) -> str | None:
    """Return how to repair the failure with this root cause; None if no remedy is known."""
    new_snapshot = (
        f"run `SELECT pg_drop_replication_slot({literal(slot)})` in the source, then `cdclake up`,"
        " which takes a new snapshot"
    )
    if _TWIN_COLUMNS in failure:
        return (
            "rename one of the columns in the source, and run `cdclake up`; if it fails again, the"
            f" log has changes from before the rename: {new_snapshot}"
        )
    if _UNKNOWN_FILE in failure:
        reason = "a table was truncated or rewritten while the slot was being created"
    elif f'publication "{slot}" does not exist' in failure:
        # PostgreSQL looks it up as of the change that it decodes, and before 18 fails for one that
        # was made between DROP PUBLICATION and CREATE PUBLICATION (bug 18683 of its list).
        reason = "the publication did not exist for a while"
    else:
        return None
    return f"{reason}, and PostgreSQL cannot decode the changes of that time: {new_snapshot}"
