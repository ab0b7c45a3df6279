"""Conversion of rows that no table took back into records that make the same rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from cdclake.firehose.put_records import Unfit
from cdclake.firehose.stream import ARRIVED_AT
from cdclake.puts.put_row import PutRoutes, parse_record
from cdclake.puts.put_table import PutStream, PutTable
from cdclake.puts.put_values import encode_text

_EPOCH = datetime(1970, 1, 1)


class RowRecords:
    """Conversion of the rows of one stream; the stream has no user's handler."""

    def __init__(self, put: PutStream) -> None:
        self._put, self._routes = put, PutRoutes(put)

    def of(self, data: bytes) -> bytes | None:
        """Return the record of a row, or the data itself if that is a record; None for neither."""
        return self.record(data) or (data if self._is_record(data) else None)

    def _is_record(self, data: bytes) -> bool:
        """Check the data as a record. Every row has the time of its arrival."""
        try:
            self._routes.row(data, 0)
            return ARRIVED_AT not in parse_record(data)
        except Unfit:
            return False

    def record(self, data: bytes) -> bytes | None:
        """Return the record that makes this row; None if none does, or several tables' do."""
        try:
            row = parse_record(data)
        except Unfit:
            return None
        found = [made for table in self._put.targets if (made := self._record_of(table, row))]
        return found[0] if len(found) == 1 else None

    def _record_of(self, table: PutTable, row: Mapping[str, Any]) -> bytes | None:
        wanted = {**{column.name: None for column in table.columns}, **row}
        if wanted.keys() - {column.name for column in table.columns} != {ARRIVED_AT}:
            return None
        try:
            record = self._encoded(table, row).encode()
            made = self._routes.row(record, row[ARRIVED_AT] // 1000)
            is_same = parse_record(made.data.encode()) == wanted
        except (Unfit, ValueError, TypeError, ArithmeticError):
            return None  # a row of other columns, or of another program
        target = (made.metadata or {}).get("otfMetadata", {}).get("destinationTableName")
        return record if is_same and target in (None, table.name) else None

    def _encoded(self, table: PutTable, row: Mapping[str, Any]) -> str:
        fields = {
            column.source: _ENCODERS.get(column.column_type.base, _plain)(row[column.name])
            for column in table.columns
            if row.get(column.name) is not None
        }
        if self._put.route is not None:
            fields.setdefault(self._put.route, encode_text(table.values[0]))
        return "{" + ",".join(f"{encode_text(name)}:{text}" for name, text in fields.items()) + "}"


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _day(days: int) -> str:
    return _plain((_EPOCH.date() + timedelta(days=days)).isoformat())


def _time(microseconds: int) -> str:
    return _plain((_EPOCH + timedelta(microseconds=microseconds)).isoformat())


def _time_of_zone(microseconds: int) -> str:
    return _plain(f"{(_EPOCH + timedelta(microseconds=microseconds)).isoformat()}Z")


# By type; `jsonb` is stored as the text of its value. Numbers were parsed with all digits.
_ENCODERS: Mapping[str, Callable[[Any], str]] = {
    "double precision": str,
    "numeric": str,
    "jsonb": str,
    "date": _day,
    "timestamp": _time,
    "timestamptz": _time_of_zone,
}
