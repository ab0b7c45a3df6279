"""Key and position of events in records that Firehose did not deliver, in each of their forms.

A record is an event, a changelog row that could not be appended, either of them wrapped for the
redrive stream, or a quarantine row with an event.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cdclake import naming
from cdclake.debezium.changelog_rows import Event, Place, position_of, source_of
from cdclake.debezium.event_parts import json_object, row_image
from cdclake.debezium.record_key import comparable_key, key_in
from cdclake.debezium.refusals import RefusedEvent
from cdclake.erasures import ErasedKeys
from cdclake.plan import Plan
from cdclake.redrive.catalog_changelogs import ReadChangelogs, no_changelogs
from cdclake.redrive.failed_rows import ANY_TABLE, FailedRows, Origin, Row
from cdclake.redrive.unwrap import unwrapped

_NOWHERE = Place(partition=None, offset=None)


class FailedEvent(NamedTuple):
    """Table, comparable key and position of an event."""

    table: str
    key: Sequence[Any]
    position: str  # "" if it cannot be read

    def is_erased(self, erased: Mapping[str, ErasedKeys]) -> bool:
        """Return whether its key was erased after it; without a position, whether it was at all."""
        keys = erased.get(self.table)
        return keys is not None and keys.refuses(self.key, self.position)


def is_event(value: Event) -> bool:
    """Return whether a JSON object is an event. A row has no object as a value."""
    return "op" in value and type(value.get("source")) is dict


class FailedEvents:
    """Reader of the events of the tables that Firehose delivers.

    `changelogs` returns the catalog's: a row may belong to a table that the plan no longer has.
    """

    def __init__(self, plan: Plan, changelogs: ReadChangelogs = no_changelogs) -> None:
        delivered = [table for table in plan.tables if table.delivery == "firehose"]
        self._by_source = {(table.schema, table.table): table for table in delivered}
        self._by_changelog = {table.changes: table for table in delivered}
        self._rows = FailedRows(plan, changelogs)

    def read(self, record: bytes, origin: Origin = ANY_TABLE) -> FailedEvent | None:
        """Return the event in a record; None if there is none, or if its key cannot be read.

        A row that fits several changelogs counts as none: it may be of any of them.
        """
        event = json_object(record)
        if event is not None and is_event(event):
            return self._of_event(event)
        try:
            relation, row = unwrapped(record)
        except ValueError:
            try:
                row = self._rows.read(record)
                relation = self._rows.relation(row, origin)
            except RefusedEvent:
                return None
        return self._of_row(relation, row)

    def _of_event(self, event: Event) -> FailedEvent | None:
        try:
            table = self._by_source.get(source_of(event))
        except RefusedEvent:
            return None
        key = key_in(table, row_image(event)) if table is not None else None
        if table is None or key is None:
            return None
        try:
            return FailedEvent(table.name, key, position_of(event, _NOWHERE))
        except RefusedEvent:
            return FailedEvent(table.name, key, "")

    def _of_row(self, relation: str, row: Row) -> FailedEvent | None:
        if relation == naming.QUARANTINE:
            return self._quarantined(row)
        table = self._by_changelog.get(relation)
        if table is None or not row.keys() >= {*table.key}:
            return None
        position = str(row.get(naming.POSITION) or "")
        key = comparable_key(table, (row[name] for name in table.key))
        return FailedEvent(table.name, key, position)

    def _quarantined(self, row: Row) -> FailedEvent | None:
        """Return the event in a quarantine row, which may name its table."""
        try:
            record = base64.b64decode(row["value"], validate=True)
        except (KeyError, TypeError, ValueError):
            return None
        named = row.get("table")
        return self.read(record, ANY_TABLE if named is None else Origin.one(named))
