"""Decoding of single events into the JSON rows that Firehose delivers, for all tables of a plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.debezium.changelog_rows import LogRows, Place, read_event, source_of
from cdclake.debezium.refusals import RefusedEvent
from cdclake.firehose.erased_rows import Erased, check_event, check_row
from cdclake.plan import Plan, Table

encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
).encode


class DeliveredRows:
    """Decoder of events into changelog rows, for the tables that Firehose delivers."""

    def __init__(self, plan: Plan) -> None:
        self._rows = {
            (table.schema, table.table): LogRows(table, plan)
            for table in plan.tables
            if table.delivery == "firehose"
        }

    def decode(
        self, value: bytes, place: Place, ingested_at: int, erased: Erased
    ) -> tuple[Table, Mapping[str, Any]] | None:
        """Decode a record's value into its table and row; None if it is not a change of a table.

        That is a tombstone, a heartbeat or a row of cdclake's own tables. Raise RefusedEvent if
        the value cannot be decoded, and ErasedEvent if its key was erased after it. `ingested_at`
        is in microseconds since 1970.
        """
        event = read_event(value) if value else None
        source = source_of(event) if event is not None else None
        if event is None or source is None or source[0] == naming.SOURCE_SCHEMA:
            return None
        rows = self._rows.get(source)
        if rows is None:
            raise RefusedEvent(refusals.UNKNOWN_TABLE)
        try:
            row = rows.row(event, place, ingested_at)
        except Exception:  # also a bug: Firehose would keep the event
            check_event(rows.table, event, place, erased)
            raise
        check_row(rows.table, row, erased)
        return rows.table, row


def otf_metadata(database: str, relation: str) -> dict[str, Any]:
    """Return the metadata that routes a row of a function's answer to its table."""
    names = {"destinationDatabaseName": database, "destinationTableName": relation}
    return {"otfMetadata": {**names, "operation": "insert"}}
