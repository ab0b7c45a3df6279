"""Explanation of one row: why the lake shows what it shows, from the recorded facts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cdclake import naming
from cdclake.debezium.refusals import is_withheld, is_without_values
from cdclake.delivery_remedies import repair_refused, retry_refused
from cdclake.plan import Table
from cdclake.postgres.source_names import repair_lacking, rereading_remedy
from cdclake.trace.trace_facts import FlowFacts, TracedEvent, TraceFacts

_MAX_LISTED = 3


@dataclass(frozen=True, slots=True)
class TraceFinding:
    """One reason for what the lake shows; `code` is public."""

    code: str
    text: str
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the object that `trace --json` prints."""
        return {"code": self.code, "text": self.text, "remedy": self.remedy}


def explain(facts: TraceFacts) -> list[TraceFinding]:
    """Return the findings about a row; the first one is the answer, the others add to it."""
    newer = [event for event in facts.quarantined if facts.is_newer(event)]
    older = [event for event in facts.quarantined if event not in newer]
    found = [*_not_arrived(facts), *_not_stored(facts), *_refused(facts, newer)]
    found += _outcome(facts) if facts.stored else [] if found else [_never_seen(facts)]
    return [*found, *_refused(facts, older), *_history(facts), *_table(facts, found)]


def _never_seen(facts: TraceFacts) -> TraceFinding:
    """Return why no part of the lake has an event of the row."""
    table, source, flow = facts.table, facts.source, facts.flow
    if facts.is_deployed:
        is_exact = any(column.column_type.base == "citext" for column in table.key_columns)
        return TraceFinding(
            "not_in_lake",
            "the deployment's lake has no event with this key; its source and its Kafka, which are"
            " in its network, are not asked",
            ("write the key with the capitals that the lake has; " if is_exact else "")
            + f"if the source has the row, run `cdclake verify --table {table.name}`",
        )
    if source.has_row is None:
        return TraceFinding(
            "source_unknown",
            "no part of the lake has an event with this key, and the source does not answer",
            "start the source, and run the command again",
        )
    if not source.has_row and facts.erased_at:
        return TraceFinding(
            "erased",
            "the row was erased by `cdclake forget`, and no event of it from before is taken again;"
            " Kafka has such events until its retention ends",
        )
    if not source.has_row:
        return TraceFinding(
            "no_such_row", "neither the source nor the lake has, or had, a row with this key"
        )
    if flow.polled is not None:
        return _not_polled(table, flow)
    return _not_captured(facts)


def _not_polled(table: Table, flow: FlowFacts) -> TraceFinding:
    """Return why no poll has found a row that the source has."""
    if flow.last_error is not None:
        return TraceFinding(
            "not_polled",
            f"the source has the row, and the last poll of the table failed: {flow.last_error}",
            "fix the cause, then wait for the next poll, or run `cdclake job poll_tables`",
        )
    if not flow.polled:
        return TraceFinding(
            "not_polled", "the source has the row, and no poll has read the table yet",
            "wait for the next poll, or run `cdclake job poll_tables`",
        )  # fmt: skip
    return TraceFinding(
        "not_polled", "the source has the row, and the polls have not found it: they read rows"
        f" by {table.poll.by!r}",
        f"check that {table.poll.by!r} changes with every write;"
        f" `cdclake job poll_tables --table {table.name} --whole` reads all rows",
    )  # fmt: skip


def _not_captured(facts: TraceFacts) -> TraceFinding:
    table, source, flow = facts.table, facts.source, facts.flow
    if source.is_published is False:
        return TraceFinding(
            "not_published",
            f"the source has the row, but the publication does not contain {table.source}",
            f"run `cdclake up FILE`, which restores the publication, then {_read_again(facts)}",
        )
    if source.row_filter is not None:
        return TraceFinding(
            "filtered",
            "the source has the row, and the row filter of the publication hides it:"
            f" {source.row_filter}",
            f"remove the filter in the source, then {_read_again(facts)}",
        )
    if flow.is_loading:
        return TraceFinding(
            "before_load", "the source has the row, and the table's first load has not reached it",
            "wait; `cdclake status` shows the progress",
        )  # fmt: skip
    if flow.is_resyncing:
        return TraceFinding("resync_running", "the running resync has not read the row yet")
    return _not_sent(facts)


def _read_again(facts: TraceFacts) -> str:
    return rereading_remedy(facts.table, is_deployed=facts.is_deployed)


def _not_sent(facts: TraceFacts) -> TraceFinding:
    flow = facts.flow
    if not flow.kafka_answers:
        return TraceFinding(
            "kafka_unknown",
            "the source has the row, the lake's tables have no event of it, and Kafka does not"
            " answer",
            "run `cdclake up`, then this command again",
        )
    if flow.connector_error is not None:
        return TraceFinding(
            "not_in_kafka",
            f"the source has the row, and the connector has not sent it: {flow.connector_error}",
            "run `cdclake up`, then this command again",
        )
    return TraceFinding(
        "not_in_kafka",
        "the source has the row, and Kafka has no event of it: the connector has not sent it yet,"
        " or it was written while the table was not captured",
        f"run the command again; if nothing changes, {_read_again(facts)}",
    )


def _not_arrived(facts: TraceFacts) -> Iterator[TraceFinding]:
    if not (waiting := facts.waiting):
        return
    count = f"{len(waiting)} event{'s' if len(waiting) > 1 else ''} of the row"
    one = f"{count} {'are' if len(waiting) > 1 else 'is'} in Kafka and not in the lake"
    if facts.flow.is_stopped:
        yield TraceFinding(
            "table_stopped",
            f"{one}: the table is stopped: {facts.flow.last_error}",
            "fix the cause, then run `cdclake resume`",
        )
    elif facts.flow.is_paused:
        yield TraceFinding("paused", f"{one}: the stream is paused", "run `cdclake resume`")
    elif not facts.flow.writer_runs:
        yield TraceFinding("not_read", f"{one}: {facts.table.writer} is down", "run `cdclake up`")
    else:
        them = "them" if len(waiting) > 1 else "it"
        yield TraceFinding("not_read", f"{one}: the next batch reads {them}")


def _not_stored(facts: TraceFacts) -> Iterator[TraceFinding]:
    name, is_delivered = facts.table.name, facts.table.delivery == "firehose"
    # The stream drops some records of rows that it has, such as copies of an earlier snapshot.
    if not facts.passed or (facts.stored and not is_delivered):
        return
    yield TraceFinding(
        "not_stored",
        "Kafka has a newer event of the row, which the lake has passed without storing it",
        "run `cdclake redrive`, which delivers failed records again"
        if is_delivered
        else f"run `cdclake verify --table {name}`; if it differs, {_read_again(facts)}",
    )


def _refused(facts: TraceFacts, events: Sequence[TracedEvent]) -> Iterator[TraceFinding]:
    name, delivery = facts.table.name, facts.table.delivery
    # One finding per reason: an event that was delivered twice is quarantined twice.
    for reason in dict.fromkeys(event.reason or "" for event in events):
        if is_withheld(reason):
            yield TraceFinding(
                "withheld",
                f"a rule of the pipeline file withholds an event of the row: {reason}",
                "correct the row in the source; or change the rule, then"
                f" {retry_refused(name, delivery)}",
            )
        else:
            lacking = is_without_values(reason)
            yield TraceFinding(
                "quarantined",
                f"an event of the row is in {naming.QUARANTINE}: {reason}",
                repair_lacking(facts.table, is_deployed=facts.is_deployed)
                if lacking
                else repair_refused(name, delivery),
            )


def _outcome(facts: TraceFacts) -> Iterator[TraceFinding]:
    """Yield what the newest event of the changelog made of the row."""
    newest = facts.newest
    assert newest is not None  # the caller has checked it
    if newest.op == "d":
        yield _deleted(facts, newest)
    elif (by := facts.truncated_by) is not None:
        yield _truncated(by)
    yield from _applied(facts, newest)
    created = next((event for event in reversed(facts.stored) if event.op in ("c", "d")), newest)
    if created.op == "c" and created.other_key is not None:
        yield TraceFinding(
            "key_changed_from", f"the row had the key {created.other_key} before it was changed"
        )
    if newest.is_polled:
        yield TraceFinding("polled", "a poll found the row in the source; the log was not read")
    elif newest.is_snapshot and facts.truncated_by is None:
        was_read_again = len({event.identity for event in facts.stored}) > 1
        yield TraceFinding(
            *("resynced", "the row was read again from the source, by a resync or a new epoch")
            if was_read_again
            else (
                "loaded",
                "a load or a resync read the row; the lake has no later change of it",
            )
        )


def _truncated(by: TracedEvent) -> TraceFinding:
    if by.is_sweep:
        return TraceFinding(
            "swept",
            "a new epoch's snapshot did not have the row: it was removed without an event, as while"
            " there was no slot",
        )
    return TraceFinding(
        "truncated", f"a TRUNCATE of the table removed the row{_in_transaction(by)}"
    )


def _deleted(facts: TraceFacts, event: TracedEvent) -> TraceFinding:
    if event.other_key is not None:
        is_one_word = len(facts.table.key) == 1  # otherwise it has one word per column
        key = shlex.quote(event.other_key) if is_one_word else event.other_key
        return TraceFinding(
            "key_changed_to",
            f"the key of the row was changed to {event.other_key}, and the row lives on there"
            f"{_in_transaction(event)}",
            f"run `cdclake trace {facts.table.name} {key}`",
        )
    if facts.table.deletes == "soft":
        return TraceFinding(
            "deleted_soft",
            "the row was deleted in the source; `deletes: soft` keeps its last values in"
            f" {facts.table.name}, marked by {naming.DELETED}{_in_transaction(event)}",
        )
    return TraceFinding("deleted", f"the row was deleted in the source{_in_transaction(event)}")


def _in_transaction(event: TracedEvent) -> str:
    return "" if event.tx_id is None else f", by transaction {event.tx_id}"


def _applied(facts: TraceFacts, newest: TracedEvent) -> Iterator[TraceFinding]:
    current = naming.current_name(facts.table.name)
    if facts.truncated_by is None and not facts.is_applied:
        yield TraceFinding(
            "not_applied",
            f"{current} shows the newest event, and {facts.table.name} does not have it yet",
            "wait for the next batch, or run `cdclake job apply_changes`",
        )
    elif facts.truncated_by is None and newest.op != "d":
        yield TraceFinding("applied", f"{current} and {facts.table.name} have the newest event")


def _history(facts: TraceFacts) -> Iterator[TraceFinding]:
    """Yield what is remarkable about the way to the newest event."""
    stored = facts.stored
    for before, after in pairwise(stored):
        if before.op == "d" and after.op in ("c", "u", "r") and before.other_key is None:
            yield TraceFinding("reinserted", "the row was deleted, and inserted again later")
            break
    if any((a.ingested_us or 0) > (b.ingested_us or 0) for a, b in pairwise(stored)):
        yield TraceFinding(
            "late_event",
            "an event arrived after newer ones, for example by a replay or a redrive; the position"
            " decides, so it did not replace their values",
        )
    newest = facts.newest
    if newest is not None and newest.unsent:
        names = ", ".join(newest.unsent[:_MAX_LISTED])
        yield TraceFinding(
            "unsent_value",
            f"the newest event does not contain {names}: PostgreSQL does not send an unchanged"
            " large value, and the lake keeps the earlier one",
        )
    if facts.state is not None and facts.state.missing:
        names = ", ".join(facts.state.missing[:_MAX_LISTED])
        yield TraceFinding(
            "value_missing",
            f"the lake never received the value of {names}",
            _read_again(facts),
        )


def _table(facts: TraceFacts, found: list[TraceFinding]) -> Iterator[TraceFinding]:
    """Yield what the table's declaration and its operations do to the row."""
    codes = {finding.code for finding in found}
    masked = [column.name for column in facts.table.columns if column.mask]
    if masked and facts.events:
        yield TraceFinding(
            "masked",
            f"the connector masks {', '.join(masked)}: the lake has what the mask leaves of it",
        )
    yield from _interrupted(facts, codes)
    if facts.flow.is_resyncing and "resync_running" not in codes:
        yield TraceFinding("resync_running", "a resync of the table is running")
    if facts.flow.is_stopped and "table_stopped" not in codes:
        yield TraceFinding(
            "table_stopped",
            f"the table is stopped, and later changes are missing: {facts.flow.last_error}",
            "fix the cause, then run `cdclake resume`",
        )
    if facts.flow.is_loading and "before_load" not in codes and facts.events:
        yield TraceFinding("loading", "the table's load has not finished")
    if facts.stored and facts.source.has_row is not None:
        shows = facts.current_row is not None
        if shows != facts.source.has_row and not facts.waiting and not facts.quarantined:
            yield TraceFinding(
                "differs",
                f"the source {_has(facts.source.has_row)} the row now, and"
                f" {naming.current_name(facts.table.name)} {_has(shows)} it: a change is on its"
                " way, or was not captured",
                f"run the command again; if nothing changes, run `cdclake verify --table"
                f" {facts.table.name}`",
            )


def _interrupted(facts: TraceFacts, codes: set[str]) -> Iterator[TraceFinding]:
    """Yield why changes after the newest event may be missing."""
    if not facts.stored:
        return
    table, flow = facts.table, facts.flow
    if facts.source.is_published is False and "not_published" not in codes:
        yield TraceFinding(
            "not_published",
            f"the publication does not contain {table.source}: later changes are missing",
            f"run `cdclake up FILE`, which restores it, then {_read_again(facts)}",
        )
    if flow.connector_error is not None and not flow.is_loading:
        yield TraceFinding(
            "not_in_kafka",
            f"later changes may be missing, since the connector sends none: {flow.connector_error}",
            "fix the cause, then run `cdclake up`",
        )
    if flow.polled is not None and flow.last_error is not None:
        yield TraceFinding(
            "not_polled",
            f"the last poll of the table failed, and later changes may be missing:"
            f" {flow.last_error}",
            "fix the cause, then wait for the next poll, or run `cdclake job poll_tables`",
        )
    if not flow.kafka_answers:
        yield TraceFinding(
            "kafka_unknown", "Kafka does not answer: events that the lake has not read are unknown"
        )


def _has(is_there: bool) -> str:
    return "has" if is_there else "does not have"
