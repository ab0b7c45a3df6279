"""Decoding of failed records into changelog rows, or into quarantine rows.

Firehose keeps failed records as lines of JSON: the record that the stream had read, or the row that
its function had returned. AWS does not document which of them is under `iceberg-failed`, or after a
failed query of `route:`, so the content decides. A row depends only on the line, its place and the
plan, except for its timestamps; so redriving a line twice yields the same rows.

A record of an erased key that is older than the erasure becomes neither, nor does one of a table
whose changelog the stream has yet to widen.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Collection, Mapping
from datetime import timedelta
from functools import cache
from typing import Any, Literal, NamedTuple

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.debezium.changelog_rows import Place, read_event, source_of
from cdclake.debezium.event_parts import json_object
from cdclake.debezium.refusals import RefusedEvent
from cdclake.firehose.erased_rows import Erased, ErasedEvent, ReadErased
from cdclake.firehose.rows import DeliveredRows, encode
from cdclake.iceberg.collapse import replay_age
from cdclake.plan import Plan, Table
from cdclake.redrive.catalog_changelogs import ReadChangelogs, no_changelogs
from cdclake.redrive.failed_events import FailedEvents, is_event
from cdclake.redrive.failed_rows import ANY_TABLE, FailedRows, Origin
from cdclake.redrive.objects import Line, raw_data
from cdclake.redrive.unwrap import unwrapped

log = logging.getLogger()

_NOWHERE = Place(partition=None, offset=None)

Row = Mapping[str, Any]


class RoutedRow(NamedTuple):
    """A row, the relation that it goes to, and the reason if that is quarantine."""

    relation: str
    row: Row
    reason: str | None = None

    def record(self) -> bytes:
        """Encode the row for the redrive stream; `unwrapped` decodes it."""
        return encode({"table": self.relation, "row": self.row}).encode()


class AwaitedChangelog(Exception):
    """The stream has yet to widen the changelog that the record goes to, `changelog`."""

    def __init__(self, changelog: str) -> None:
        super().__init__(changelog)
        self.changelog = changelog


class Redrive:
    """Decoder of the failed records of one deployment.

    The names of its streams start with `prefix`; in a local lake that is the pipeline's name.
    `erased` is called for every record.
    """

    def __init__(self, plan: Plan, prefix: str, erased: ReadErased) -> None:
        self._plan, self._erased = plan, erased
        self._own = naming.delivery_stream_name(prefix, naming.REDRIVE)
        self._origins = {
            naming.delivery_stream_name(prefix, stream.name): Origin.of(stream)
            for stream in plan.deliveries
        }
        self.follow(plan)

    def follow(
        self,
        plan: Plan,
        awaited: Collection[str] = (),
        changelogs: ReadChangelogs = no_changelogs,
    ) -> None:
        """Decode with the types of this plan from now on, no record of the tables `awaited`.

        `changelogs` returns the catalog's; it is called once at most.
        """
        changelogs = cache(changelogs)
        self._awaited = {naming.changes_name(table) for table in awaited}
        self._events = DeliveredRows(plan)
        self._returned = FailedRows(plan, changelogs)
        self._failed = FailedEvents(plan, changelogs)

    def route(self, line: Line, now: int) -> RoutedRow | None:
        """Decode the line's record into a row; None if it is not a change of a table.

        A record that cannot be decoded becomes a quarantine row. Raise ErasedEvent if its key was
        erased after it, AwaitedChangelog if the changelog is to be widened first, and another error
        if the erased keys are unknown. `now` is in microseconds since 1970.
        """
        erased = self._erased()
        try:
            raw = raw_data(line.text)
        except ValueError:
            return self._quarantined(line, line.text, refusals.UNREADABLE_LINE, now)
        self._check_erased(raw, self._origin(line), erased)
        try:
            routed = self._decode(line, raw, now)
            if routed is not None:
                encode(routed.row)  # an encoding error is quarantined instead of raised later
            return routed
        except AwaitedChangelog:
            raise
        except Exception as error:  # a bug must not block the lines that follow
            if not isinstance(error, RefusedEvent):
                log.exception("unexpected error in line %d of %s", line.number, line.lies_in)
            reason = (
                str(error) if isinstance(error, RefusedEvent) else f"FAULT: {type(error).__name__}"
            )
            return self._quarantined(line, raw, reason, now)

    def is_change(self, line: Line) -> bool:
        """Return whether the record is a change or its row, not a put record or a request."""
        try:
            raw = raw_data(line.text)
            if self._form(line, raw) == "row":
                return naming.POSITION in self._returned.read(raw)
            event = read_event(raw)
            return event is not None and None not in source_of(event)
        except (ValueError, RefusedEvent):
            return False

    def is_erased(self, line: Line) -> bool:
        """Return whether the key of the line's record was erased after it, as `route` decides."""
        try:
            self._check_erased(raw_data(line.text), self._origin(line), self._erased())
        except ValueError:
            return False
        except ErasedEvent:
            return True
        return False

    def _check_erased(self, raw: bytes, origin: Origin, erased: Erased) -> None:
        """Raise ErasedEvent if the record's key was erased after it.

        A record without a readable position stays: it may be newer.
        """
        event = self._failed.read(raw, origin) if erased else None
        if event is not None and event.position and event.is_erased(erased):
            raise ErasedEvent

    def _decode(self, line: Line, raw: bytes, now: int) -> RoutedRow | None:
        form = self._form(line, raw)
        if form == "event":
            if self._awaited and (named := self._table_named(line, raw)) is not None:
                self._check_widened(naming.changes_name(named))
            decoded = self._events.decode(raw, _NOWHERE, now, {})
            if decoded is None:
                return None
            return self._young(*decoded, now)
        if form == "request":
            relation, row = _unwrapped(raw)
        else:
            row = self._returned.read(raw)
            relation = self._returned.relation(row, self._origin(line))
        if relation == naming.QUARANTINE:
            return RoutedRow(relation, row, row.get("reason"))
        self._check_widened(relation)
        table, row = self._returned.fitted(relation, row)
        return self._young(table, {**row, naming.INGESTED_AT: now}, now)

    def _form(self, line: Line, raw: bytes) -> Literal["event", "request", "row"]:
        """Return what the record is: an event, a record of the redrive stream, or a row.

        The folder decides only for a record that is none of them, which is then refused.
        """
        value, of_redrive = json_object(raw) or {}, line.stream == self._own
        if is_event(value):
            return "event"
        if of_redrive and type(value.get("row")) is dict:
            return "request"
        if self._returned.is_row(value) or line.kind == "iceberg-failed":
            return "row"
        return "request" if of_redrive else "event"

    def _young(self, table: Table, row: Row, now: int) -> RoutedRow:
        """Route the row; raise RefusedEvent if later events of it may be purged or collapsed."""
        committed, age = row[naming.COMMITTED_AT], replay_age(table, self._plan.history_days)
        if age is None or committed is None or row[naming.OP] in ("d", "t"):
            return RoutedRow(table.changes, row)
        if now - committed > age // timedelta(microseconds=1):
            raise RefusedEvent(refusals.TOO_OLD)
        return RoutedRow(table.changes, row)

    def _origin(self, line: Line) -> Origin:
        return self._origins.get(line.stream, ANY_TABLE)

    def _check_widened(self, changelog: str) -> None:
        if changelog in self._awaited:
            raise AwaitedChangelog(changelog)

    def _quarantined(self, line: Line, value: bytes, reason: str, now: int) -> RoutedRow:
        row = {
            "topic": line.lies_in,
            "partition": None,
            "offset": line.number,
            "key": None,
            "value": base64.b64encode(value).decode(),
            "headers": None,
            "reason": reason,
            "table": self._table_named(line, value),
            "quarantined_at": now,
        }
        return RoutedRow(naming.QUARANTINE, row, reason)

    def _table_named(self, line: Line, value: bytes) -> str | None:
        """Return the table that the event names, or else the one whose own stream failed."""
        try:
            source = source_of(read_event(value) or {})
        except RefusedEvent:
            source = (None, None)
        for table in self._plan.tables:
            if (table.schema, table.table) == source:
                return table.name
        origin = self._origin(line)
        return next(iter(origin.tables)) if origin.is_certain and origin.tables else None


def _unwrapped(raw: bytes) -> tuple[str, Row]:
    try:
        return unwrapped(raw)
    except ValueError:
        raise RefusedEvent(refusals.UNREADABLE_VALUE) from None
