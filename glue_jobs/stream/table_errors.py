"""Errors of single tables: each stops or holds back its table, or fails the whole stream."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from cdclake.errors import TableError
from cdclake.jobs.iceberg.error_policy import hold_reason, stop_reason
from cdclake.jobs.stream.changelog_job import Ranges
from cdclake.jobs.stream.partition_summary import RefusedReasons
from cdclake.jobs.stream.schema_drift import describe_drift
from cdclake.jobs.stream.table_stream import Outcome, TableStream

log = logging.getLogger("cdclake.stream")


def stop(stream: TableStream, ranges: Ranges, reason: str, columns: Sequence[str] = ()) -> None:
    """Stop the table before this batch; it resumes at the start of its ranges."""
    stream.place.keep_offsets(ranges)
    stream.place.stop(reason, columns)
    log.error("table %s stopped: %s", stream.table.name, reason, extra={"table": stream.table.name})


def stop_after(error: Exception, stream: TableStream, ranges: Ranges) -> None:
    """Stop the table, or hold it back, after an error; raise it if the stream must fail."""
    name = stream.table.name
    held, stopped = hold_reason(name, error), stop_reason(name, error)
    if held is not None:
        log.warning(
            "table %s: processing failed; retried after a pause",
            name,
            exc_info=error,
            extra={"table": name},
        )
        stream.place.keep_offsets(ranges)
        stream.place.hold(held, time.time())
    elif stopped is not None:
        stop(stream, ranges, stopped)
    else:
        raise error


def note_reasons(stream: TableStream, reasons: RefusedReasons) -> None:
    """Note an event that was too large; stop the table if the policy or the registry demands it."""
    table = stream.table
    if reasons.oversized is not None:
        log.error("table %s: %s", table.name, reasons.oversized)
        stops = stream.plan.oversized_records == "stop"
        stream.place.note_oversized(table.name, reasons.oversized, stops=stops)
    if reasons.schema is not None:
        remedy = (
            "allow the change in the registry, or undo it in the source; then run `cdclake resume`"
            f" and `cdclake replay --table {table.name}`, which appends the quarantined events"
        )
        stop(stream, {}, str(TableError(table.name, reasons.schema, remedy)))


def judge(stream: TableStream, outcome: Outcome) -> None:
    """Stop the table on schema drift or after too many refused events, which are counted."""
    place, plan, table = stream.place, stream.plan, stream.table
    if outcome.drift is not None:
        place.first_seen = dict(outcome.drift.known.first_seen)
        place.suspected = list(outcome.drift.known.suspected)
        if outcome.drift.stop_offsets:
            message, remedy = describe_drift(table, outcome.drift)
            error = TableError(table.name, message, remedy)
            stop(stream, {}, str(error), columns=outcome.drift.columns)
            return
    note_reasons(stream, outcome.reasons)
    if outcome.reasons.schema is None and place.stop_if_refusing(plan.stop_table_after):
        log.error("table %s stopped: %s", table.name, place.last_error)
