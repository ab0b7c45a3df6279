"""Rows that Firehose could not append, checked against the changelogs as declared now."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.debezium.refusals import RefusedEvent
from cdclake.firehose.stream import DeliveryStream
from cdclake.iceberg.schemas import QUARANTINE_COLUMNS, changes_schema
from cdclake.plan import Plan, Table
from cdclake.redrive.catalog_changelogs import Changelogs, ReadChangelogs

_BITS = {"int": 31, "bigint": 63, "timestamp": 63}  # without the sign
_KINDS: Mapping[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "double": (float, int),
    "float": (float, int),
    "string": (str,),
}

Row = Mapping[str, Any]


class Origin(NamedTuple):
    """Tables that a failed row may belong to, by the stream that failed to append it."""

    tables: Collection[str] | None = None  # of the current plan; None: any
    is_certain: bool = False  # the stream never had another table

    @staticmethod
    def of(stream: DeliveryStream) -> Origin:
        """Return the origin of a stream's rows. A domain may have lost the row's table."""
        return Origin(stream.tables, is_certain=not stream.routed)

    @staticmethod
    def one(table: str) -> Origin:
        """Return the origin of rows that are certainly the table's."""
        return Origin((table,), is_certain=True)


ANY_TABLE = Origin()


class FailedRows:
    """Lookup of the changelog that a failed row belongs to, and check that the row fits.

    `changelogs` returns the catalog's: a row may belong to a table that the plan no longer has.
    They are read when the first row is looked up by its columns.
    """

    def __init__(self, plan: Plan, changelogs: ReadChangelogs) -> None:
        self._plan, self._changelogs = plan, changelogs
        delivered = [table for table in plan.tables if table.delivery == "firehose"]
        self._logs = {t.changes: (t, dict(changes_schema(t, plan).columns)) for t in delivered}
        self._quarantine = {name for name, _ in QUARANTINE_COLUMNS}

    @cached_property
    def _removed(self) -> Changelogs:
        declared = {table.changes for table in self._plan.all_tables}
        return {log: c for log, c in self._changelogs().items() if log not in declared}

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

    def relation(self, row: Row, origin: Origin) -> str:
        """Find a row's relation by its columns, since a row does not name it.

        Raise RefusedEvent if no relation has exactly these columns, or several have them: a row in
        another table's changelog would replace or delete that table's row.
        """
        if row.keys() == self._quarantine:
            return naming.QUARANTINE
        among = [
            (log, columns)
            for log, (table, columns) in self._logs.items()
            if origin.tables is None or table.name in origin.tables
        ]
        if origin.is_certain and len(among) == 1:
            return among[0][0]
        fitting = [log for log, columns in among if columns.keys() == row.keys()]
        if not fitting:
            raise RefusedEvent(refusals.NO_TABLE)
        fitting += sorted(log for log, found in self._removed.items() if {*found} == row.keys())
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
