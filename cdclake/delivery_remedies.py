"""Remedies that depend on a table's delivery: only the stream's tables have `replay` and `resync`.

`Plan.streamed` refuses these commands for the other deliveries.
"""

from __future__ import annotations

from cdclake.plan import Delivery


def retry_refused(table: str, delivery: Delivery, *, options: str = "") -> str:
    """Return how the table's quarantined events come into the lake once their cause is fixed."""
    match delivery:
        case "stream":
            return f"run `cdclake replay --table {table}{options}`"
        case "firehose":
            redrive = "cdclake redrive" + options
            return (
                "copy the failed object back from `redriven/`, as in step 5 of `cdclake runbook"
                f" redrive`, and run `{redrive}`"
            )
        case "poll":
            return "wait for the next poll that reads the row, which stores it"


def column_added_by(table: str, delivery: Delivery) -> str:
    """Return what adds a declared column to the table in the lake."""
    if delivery == "poll":
        return f"run `cdclake job poll_tables --table {table}`, or wait for the next poll to add it"
    return (
        "run `cdclake up FILE`, or deploy the file, and `cdclake resume` if the stream is paused:"
        " its next batch adds it"
    )


def earlier_values_read(table: str, delivery: Delivery) -> str:
    """Return how the lake reads what was sent before, after a column was removed from the file."""
    if delivery == "poll":
        return f"run `cdclake job poll_tables --table {table}`"
    return "wait until the table streams without lag (`cdclake status`)"


def repair_refused(table: str, delivery: Delivery, *, options: str = "") -> str:
    """Return what to do about quarantined events whose cause is not fixed."""
    cause = "correct the row in the source" if delivery == "poll" else "fix the cause"
    return f"{cause}, then {retry_refused(table, delivery, options=options)}"


def read_again(
    table: str, delivery: Delivery, *, options: str = "", is_deployed: bool = False
) -> str:
    """Return how all rows of the table come into the lake from the source again."""
    match delivery:
        case "stream":
            return f"run `cdclake resync {table}{options}`"
        case "firehose":  # the stream does not write its changelog, so it cannot delete rows either
            if is_deployed:
                return (
                    "remove the table from the file, deploy, and add it again under another"
                    " `name:`: import its topic and send the signal of its incremental snapshot,"
                    " see `cdclake runbook resync`"
                )
            return (
                "remove the table from the file, run `cdclake up FILE`, and add it again under"
                " another `name:`"
            )
        case "poll":
            return f"run `cdclake job poll_tables --table {table}{options} --whole`"
