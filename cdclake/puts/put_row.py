"""Conversion of a put record into a row of its table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from cdclake.firehose.put_records import Unfit
from cdclake.firehose.stream import ARRIVED_AT
from cdclake.puts.put_table import PutTable
from cdclake.puts.put_values import encode_text, reader_of

_BLANK = " \t\r\n"
_NULL = "null"


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


class PutRows:
    """Conversion of one table's records: one JSON object each, checked field by field."""

    def __init__(self, table: PutTable) -> None:
        self._columns = [
            (column.source, encode_text(column.name), reader_of(column.column_type))
            for column in table.columns
        ]
        self._required = {c.source for c in table.columns if c.name in table.key}
        self._known = {column.source for column in table.columns}
        self._refuses_unknown = table.unknown_fields == "refuse"

    def row(self, value: bytes, arrived_ms: int) -> str:
        """Return the row in JSON; times are microseconds, and dates days, since 1970.

        Raise Unfit if the record is not one JSON object, or if a field does not fit its column.
        """
        record = parse_record(value)
        if self._refuses_unknown and (unknown := record.keys() - self._known):
            raise Unfit(f"unknown field {min(unknown)!r:.80}")
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
    if not isinstance(found, dict):
        raise Unfit("the record is not a JSON object")
    if end < len(text):
        raise Unfit("the record has more than one JSON object; put each as a separate record")
    return found
