"""What Firehose could not deliver, made anew: rows of logs, and of the quarantine for the rest.

Firehose keeps failed records as lines of JSON: of `processing-failed` what the stream had read, of
`iceberg-failed` the row that its function made. A row is made of the line, its place and the plan
alone, but for the moments; so a line that is redriven twice brings the same rows.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.debezium.changelog_rows import Place, read_event, source_of
from cdclake.debezium.refusals import RefusedEvent
from cdclake.firehose.rows import DeliveredRows, encode
from cdclake.iceberg.collapse import YOUNG
from cdclake.plan import Plan, Table
from cdclake.redrive.failed_rows import FailedRows
from cdclake.redrive.objects import Line

log = logging.getLogger()

_MAX_AGE_US = int(YOUNG.total_seconds() * 1e6)
_NOWHERE = Place(partition=None, offset=None)

Row = Mapping[str, Any]


class RoutedRow(NamedTuple):
    """A row, and the relation that it goes to; with a reason if that is the quarantine."""

    relation: str
    row: Row
    reason: str | None = None

    def record(self) -> bytes:
        """What is put into the stream; `unwrapped` takes it apart."""
        return encode({"table": self.relation, "row": self.row}).encode()


def unwrapped(record: bytes) -> tuple[str, Row]:
    """The relation and the row that a record names; ValueError if it does not."""
    wrapped = json.loads(record)
    if type(wrapped) is not dict or wrapped.keys() != {"table", "row"}:
        raise ValueError("the record has not just `table` and `row`")
    relation, row = wrapped["table"], wrapped["row"]
    if type(relation) is not str or type(row) is not dict:
        raise ValueError("`table` is no text, or `row` no object")
    return relation, row


class Redrive:
    """Makes rows of what failed in the deployment of this `prefix`; locally the pipeline's name."""

    def __init__(self, plan: Plan, prefix: str) -> None:
        self._plan = plan
        self._own = naming.delivery_stream_name(prefix, naming.REDRIVE)
        self._tables = {
            naming.delivery_stream_name(prefix, stream.name): stream.tables
            for stream in plan.deliveries
        }
        self._events = DeliveredRows(plan)
        self._returned = FailedRows(plan)

    def route(self, line: Line, now: int) -> RoutedRow | None:
        """Where the line's record goes as which row; None for what is no change of a table.

        `now` is in microseconds since 1970.
        """
        try:
            raw = _raw_data(line.text)
        except ValueError:
            return self._quarantined(line, line.text, refusals.UNREADABLE_LINE, now)
        try:
            made = self._decode(line, raw, now)
            if made is not None:
                encode(made.row)  # fails here, and not where rows are put
            return made
        except Exception as error:  # a fault of ours must not hold up the lines behind
            if not isinstance(error, RefusedEvent):
                log.exception("line %d of %s was not understood", line.number, line.lies_in)
            reason = (
                str(error) if isinstance(error, RefusedEvent) else f"FAULT: {type(error).__name__}"
            )
            return self._quarantined(line, raw, reason, now)

    def _decode(self, line: Line, raw: bytes, now: int) -> RoutedRow | None:
        if line.kind == "processing-failed" and line.stream != self._own:
            made = self._events.decode(raw, _NOWHERE, now)
            if made is None:
                return None
            return _young(*made, now)
        if line.stream == self._own and line.kind == "processing-failed":
            relation, row = _unwrapped(raw)
        else:
            row = self._returned.read(raw)
            relation = self._returned.relation(row, self._tables.get(line.stream))
        if relation == naming.QUARANTINE:
            return RoutedRow(relation, row, row.get("reason"))
        table, row = self._returned.fitted(relation, row)
        return _young(table, {**row, naming.INGESTED_AT: now}, now)

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
        """The table that the event says it is of, or the only one of its stream."""
        try:
            source = source_of(read_event(value) or {})
        except RefusedEvent:
            source = (None, None)
        for table in self._plan.tables:
            if (table.schema, table.table) == source:
                return table.name
        tables = self._tables.get(line.stream, ())
        return tables[0] if len(tables) == 1 else None


def _raw_data(text: bytes) -> bytes:
    """The record of a line; ValueError if it has none."""
    line = json.loads(text)
    raw = line.get("rawData") if type(line) is dict else None
    if type(raw) is not str:
        raise ValueError("no rawData")
    return base64.b64decode(raw, validate=True)


def _unwrapped(raw: bytes) -> tuple[str, Row]:
    try:
        return unwrapped(raw)
    except ValueError:
        raise RefusedEvent(refusals.UNREADABLE_VALUE) from None


def _young(table: Table, row: Row, now: int) -> RoutedRow:
    """RefusedEvent if the row may have been deleted so long ago that nobody knows any more."""
    committed = row[naming.COMMITTED_AT]
    revives = row[naming.OP] not in ("d", "t") and table.deletes != "soft"
    if revives and committed is not None and now - committed > _MAX_AGE_US:
        raise RefusedEvent(refusals.TOO_OLD)
    return RoutedRow(table.changes, row)
