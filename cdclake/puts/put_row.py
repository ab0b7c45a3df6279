"""Conversion of put records into rows, and the choice of each row's table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from cdclake.firehose.put_records import PutRow, Unfit
from cdclake.firehose.rows import otf_metadata
from cdclake.firehose.stream import ARRIVED_AT
from cdclake.puts.put_table import PutStream, PutTable
from cdclake.puts.put_values import encode_text, reader_of

_BLANK = " \t\r\n"
_NULL = "null"
# Without the field's name, which its producer chose: reasons are logged, and say no content.
_UNKNOWN_FIELD = "a field without a declared column; `unknown_fields: ignore` would omit it"


def _refuse_constant(name: str) -> Any:
    raise Unfit(f"{name} is not JSON")


def _pairs(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Unfit("a field occurs twice")
    return found


_decoder = json.JSONDecoder(
    parse_float=Decimal, parse_constant=_refuse_constant, object_pairs_hook=_pairs
)


class PutRoutes:
    """Conversion of a stream's records into rows, each of the table that its route names."""

    def __init__(self, put: PutStream) -> None:
        self._route = put.route
        ignored = put.unknown_fields == "ignore"
        self._only = PutRows(put.targets[0], put.route, ignores_unknown=ignored)
        self._by_value = {
            value: (
                PutRows(table, put.route, ignores_unknown=ignored),
                otf_metadata(put.database, table.name),
            )
            for table in put.targets
            for value in table.values
        }

    def row(self, value: bytes, arrived_ms: int) -> PutRow:
        """Return the record's row; raise Unfit if it has no table or does not fit its table."""
        record = parse_record(value)
        if self._route is None:
            return PutRow(self._only.row(record, arrived_ms))
        given = record.get(self._route)
        if given is None:
            raise Unfit(f"{self._route}: missing, but selects the table")
        found = self._by_value.get(given) if isinstance(given, str) else None
        if found is None:
            raise Unfit(f"{self._route}: its value selects no table")
        rows, metadata = found
        return PutRow(rows.row(record, arrived_ms), metadata)


class PutRows:
    """Conversion of one table's records, which are checked field by field."""

    def __init__(self, table: PutTable, route: str | None, *, ignores_unknown: bool) -> None:
        self._columns = [
            (column.source, encode_text(column.name), reader_of(column.column_type))
            for column in table.columns
        ]
        self._required = {c.source for c in table.columns if c.name in table.key}
        # The route's field selects the table, and need not be a column.
        self._known = {route, *(column.source for column in table.columns)}
        self._ignores_unknown = ignores_unknown

    def row(self, record: Mapping[str, Any], arrived_ms: int) -> str:
        """Return the row in JSON; times are microseconds, and dates days, since 1970.

        Raise Unfit if a field does not fit its column.
        """
        if not self._ignores_unknown and record.keys() - self._known:
            raise Unfit(_UNKNOWN_FIELD)
        fields = []
        for source, name, read in self._columns:
            given = record.get(source)
            if given is None:
                if source in self._required:
                    raise Unfit(f"{source}: missing, but part of the key")
                fields.append(f"{name}:{_NULL}")
                continue
            try:
                fields.append(f"{name}:{read(given)}")
            except Unfit as unfit:
                raise Unfit(f"{source}: {unfit}") from None
        fields.append(f'"{ARRIVED_AT}":{arrived_ms * 1000}')
        return "{" + ",".join(fields) + "}"


def parse_record(value: bytes) -> dict[str, Any]:
    """Parse a record, whose numbers keep every digit; a line break after it is accepted.

    Refuse several objects: Firehose keeps failed records whole, so that one bad object would fail
    the others with it, or be lost.
    """
    try:
        text = value.decode().strip(_BLANK)
        found, end = _decoder.raw_decode(text)
    except Unfit:
        raise
    except (ValueError, RecursionError):
        raise Unfit("the record is not JSON in UTF-8") from None
    except ArithmeticError:
        raise Unfit("the record has a number whose exponent is out of range") from None
    if not isinstance(found, dict):
        raise Unfit("the record is not a JSON object")
    if end < len(text):
        raise Unfit("the record has more than one JSON object; put each as a separate record")
    return found
