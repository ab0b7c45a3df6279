"""Rows that Firehose could not append and gave back, held to the logs as they are today."""

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
    """Tells the log that a row belongs to, and whether it fits."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        delivered = [table for table in plan.tables if table.delivery == "firehose"]
        self._logs = {t.changes: (t, dict(changes_schema(t, plan).columns)) for t in delivered}
        self._quarantine = {name for name, _ in QUARANTINE_COLUMNS}

    def read(self, raw: bytes) -> Row:
        """The row; RefusedEvent if it is no JSON object."""
        try:
            row = json.loads(raw)
        except (ValueError, RecursionError):
            row = None
        if type(row) is not dict:
            raise RefusedEvent(refusals.UNREADABLE_VALUE)
        return row

    def relation(self, row: Row, tables: Collection[str] | None) -> str:
        """The relation whose columns these are; a row does not say it itself.

        `tables` are those of the stream that gave the row back, if that is known. RefusedEvent if
        no relation has these columns, or several have them.
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
        """The relation's table, and the row in its columns of today.

        What is declared no more falls away, as it does of an event. RefusedEvent if there is no
        such log any more, a column is lacking, or a value is not of its type.
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
