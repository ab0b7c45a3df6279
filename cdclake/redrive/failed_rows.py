"""Rows that Firehose could not append, checked against the changelogs as declared now."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.debezium.refusals import RefusedEvent
from cdclake.iceberg.schemas import QUARANTINE_COLUMNS, changes_schema
from cdclake.plan import Plan, Table

_BITS = {"int": 31, "bigint": 63, "timestamp": 63}  # without the sign
_KINDS: Mapping[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "double": (float, int),
    "float": (float, int),
    "string": (str,),
}

Row = Mapping[str, Any]


class FailedRows:
    """Lookup of the changelog that a failed row belongs to, and check that the row fits."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        delivered = [table for table in plan.tables if table.delivery == "firehose"]
        self._logs = {t.changes: (t, dict(changes_schema(t, plan).columns)) for t in delivered}
        self._quarantine = {name for name, _ in QUARANTINE_COLUMNS}

    def read(self, raw: bytes) -> Row:
        """Parse a row; raise RefusedEvent if it is not a JSON object."""
        try:
            row = json.loads(raw)
        except (ValueError, RecursionError):
            row = None
        if type(row) is not dict:
            raise RefusedEvent(refusals.UNREADABLE_VALUE)
        return row

    def is_row(self, value: Row) -> bool:
        """Return whether a JSON object is a row of a changelog or of the quarantine."""
        return naming.POSITION in value or value.keys() == self._quarantine

    def relation(self, row: Row, tables: Collection[str] | None) -> str:
        """Find a row's relation by its columns, since a row does not name it.

        `tables` are those of the stream that failed to append the row, if it is known. Raise
        RefusedEvent if no relation has these columns, or several have them.
        """
        if row.keys() == self._quarantine:
            return naming.QUARANTINE
        among = [
            (log, columns)
            for log, (table, columns) in self._logs.items()
            if tables is None or table.name in tables
        ]
        if tables is not None and len(among) == 1:
            return among[0][0]
        fitting = [log for log, columns in among if columns.keys() == row.keys()]
        if not fitting:
            raise RefusedEvent(refusals.NO_TABLE)
        if len(fitting) > 1:
            raise RefusedEvent(refusals.several_tables(fitting))
        return fitting[0]

    def fitted(self, relation: str, row: Row) -> tuple[Table, Row]:
        """Return the relation's table, and the row in its current columns.

        Drop values of columns that are no longer declared, as decoding an event does. Raise
        RefusedEvent if the changelog no longer exists, a column is missing, or a value has the
        wrong type.
        """
        if relation not in self._logs:
            raise RefusedEvent(refusals.NO_TABLE)
        table, columns = self._logs[relation]
        for name, kind in columns.items():
            if name not in row:
                raise RefusedEvent(refusals.lacking_column(name))
            if not _fits(row[name], kind):
                raise RefusedEvent(refusals.wrong_type(name, kind))
        return table, {name: row[name] for name in columns}


def _fits(value: Any, kind: str) -> bool:
    if value is None:
        return True
    if kind == "array<string>":
        return type(value) is list and all(type(each) is str for each in value)
    if kind in _BITS:
        return type(value) is int and -(1 << _BITS[kind]) <= value < 1 << _BITS[kind]
    return type(value) in _KINDS[kind]
