"""Key and position of events in records that Firehose did not deliver, in each of their forms.

A record is an event, a changelog row that could not be appended, either of them wrapped for the
redrive stream, or a quarantine row with an event.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from cdclake import naming
from cdclake.debezium.changelog_rows import Event, Place, position_of, source_of
from cdclake.debezium.event_parts import json_object
from cdclake.debezium.record_key import record_key
from cdclake.debezium.refusals import RefusedEvent
from cdclake.plan import Plan, Table
from cdclake.redrive.failed_rows import FailedRows, Row
from cdclake.redrive.unwrap import unwrapped

_NOWHERE = Place(partition=None, offset=None)


class FailedEvent(NamedTuple):
    """Key of an event, as the changelog has it, and its position; "" if it cannot be read."""

    key: Sequence[Any]
    position: str


class FailedEvents:
    """Reader of one table's events."""

    def __init__(self, plan: Plan, table: Table) -> None:
        self._table, self._rows = table, FailedRows(plan)

    def read(self, record: bytes, tables: Collection[str] | None = None) -> FailedEvent | None:
        """Return the event in a record; None if the table has none there, or it has no key.

        `tables` are those of the stream that failed to append a row, if it is known. A row that
        fits the changelogs of several of them counts as none: it may be of another.
        """
        event = json_object(record)
        if event is not None and "source" in event and "op" in event:
            return self._of_event(event, record)
        try:
            relation, row = unwrapped(record)
        except ValueError:
            try:
                row = self._rows.read(record)
                relation = self._rows.relation(row, tables)
            except RefusedEvent:
                return None
        return self._of_row(relation, row)

    def _of_event(self, event: Event, record: bytes) -> FailedEvent | None:
        try:
            is_mine = source_of(event) == (self._table.schema, self._table.table)
        except RefusedEvent:
            return None
        key = record_key(self._table, None, record) if is_mine else None
        if key is None:
            return None
        try:
            return FailedEvent(key, position_of(event, _NOWHERE))
        except RefusedEvent:
            return FailedEvent(key, "")

    def _of_row(self, relation: str, row: Row) -> FailedEvent | None:
        if relation == naming.QUARANTINE:
            return self._quarantined(row)
        if relation != self._table.changes or not row.keys() >= {*self._table.key}:
            return None
        key = [row[name] for name in self._table.key]
        return FailedEvent(key, str(row.get(naming.POSITION) or ""))

    def _quarantined(self, row: Row) -> FailedEvent | None:
        """Return the event in a quarantine row of the table, or of one that is not known."""
        named = row.get("table")
        if named not in (None, self._table.name):
            return None
        try:
            record = base64.b64decode(row["value"], validate=True)
        except (KeyError, TypeError, ValueError):
            return None
        return self.read(record, None if named is None else (named,))
