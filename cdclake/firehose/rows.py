"""The rows that Firehose delivers, of all tables of a plan: as JSON, one event at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.debezium.changelog_rows import LogRows, Place, read_event, source_of
from cdclake.debezium.refusals import RefusedEvent
from cdclake.plan import Plan, Table

encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
).encode


class DeliveredRows:
    """Makes rows of the logs of the plan's tables that Firehose delivers."""

    def __init__(self, plan: Plan) -> None:
        self._rows = {
            (table.schema, table.table): LogRows(table, plan)
            for table in plan.tables
            if table.delivery == "firehose"
        }

    def decode(
        self, value: bytes, place: Place, ingested_at: int
    ) -> tuple[Table, Mapping[str, Any]] | None:
        """The row of a record's value, and its table; None for what is no change of one.

        That is a tombstone, a heartbeat, a row of ours. RefusedEvent if it can be no row.
        `ingested_at` is in microseconds since 1970.
        """
        event = read_event(value) if value else None
        source = source_of(event) if event is not None else None
        if event is None or source is None or source[0] == naming.SOURCE_SCHEMA:
            return None
        rows = self._rows.get(source)
        if rows is None:
            raise RefusedEvent(refusals.UNKNOWN_TABLE)
        return rows.table, rows.row(event, place, ingested_at)


def otf_metadata(database: str, relation: str) -> dict[str, Any]:
    """What tells Firehose beside an answer of its function where the row goes."""
    names = {"destinationDatabaseName": database, "destinationTableName": relation}
    return {"otfMetadata": {**names, "operation": "insert"}}
