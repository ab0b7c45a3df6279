"""Columns of the source as COPY sends them, read as those of the changelog and of the state.

Only values are read here that are proved to be what `event_values` and Spark would give; rows with
any other value are read again in the changelog's form (`ExportedSnapshot.unproved_rows`). So there
is one meaning of a value, and this module is about speed alone.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cdclake.debezium.row_rules import RowRules
from cdclake.debezium.types import DATE_RANGE_DAYS, TIMESTAMP_RANGE_US, Conversion
from cdclake.jobs.apply.representable_values import representable
from cdclake.jobs.apply.state_values import to_state
from cdclake.jobs.bulk_load.instant_texts import YEAR_1_US, YEAR_10000_US, instant_texts
from cdclake.jobs.stream.changelog_columns import arrow_type
from cdclake.jobs.stream.rule_proofs import broken_values
from cdclake.plan import Column, Table
from cdclake.postgres.event_values import is_json
from cdclake.postgres.sent_values import is_sent_as_stored

_STORED: Mapping[str, pa.DataType] = {
    "bytea": pa.binary(),
    "date": pa.date32(),
    "numeric": pa.string(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
_NO_NUMBERS = pa.array(["NaN", "Infinity", "-Infinity"])
# Of a JSON list like this it is known that Spark's parser writes it as it is: no spaces between
# elements, no fractions, no escapes, none of the characters that it would escape.
_TEXT = r'"[\x20\x21\x23-\x5b\x5d-\x7e\xa0-\x{2027}\x{2030}-\x{d7ff}]*"'
_ELEMENT = rf"(?:null|true|false|0|-?[1-9][0-9]{{0,17}}|{_TEXT})"
_KEPT_LIST = rf"^\[(?:{_ELEMENT}(?:,{_ELEMENT})*)?\]$"


class ReadColumn(NamedTuple):
    """One column of some rows; what is not proved has any value."""

    log: pa.Array
    state: pa.Array
    proved: pa.Array | None  # None: all values are


class SentColumn:
    """Reader of one column."""

    def __init__(self, column: Column, table: Table, *, has_state: bool) -> None:
        self.name, self._has_state = column.name, has_state
        self._kind, self._is_key = column.column_type, column.name in table.key
        self._is_stored, self._is_json = is_sent_as_stored(column, table), is_json(self._kind)
        self._prove = representable(self._kind)
        self._rules = [r for r in RowRules(table).rules if r.column.name == column.name]
        log = "string" if self._is_json else self._kind.log
        self._sent = _STORED[self._kind.base] if self._is_stored else arrow_type(log)

    def read(self, values: pa.Array) -> ReadColumn:
        """Read the values of some rows."""
        sent = values.cast(self._sent)
        log, state, proved = self._stored(sent) if self._is_stored else self._formed(sent)
        if sent.null_count:
            if self._is_key:
                proved = _both(proved, pc.is_valid(sent))
            elif proved is not None:
                proved = pc.or_kleene(proved, pc.is_null(sent))
        for rule in self._rules:
            broken = broken_values(log, rule)
            if broken is not None:
                proved = _both(proved, pa.array(~broken))
        return ReadColumn(log, state, proved)

    def _stored(self, sent: pa.Array) -> ReadColumn:
        """Read values that are sent as PostgreSQL stores them."""
        match self._kind.base:
            case "timestamptz":
                micros = sent.cast(pa.int64())
                proved = _between(micros, YEAR_1_US, YEAR_10000_US - 1)
                return ReadColumn(_instants(micros, proved), sent, proved)
            case "timestamp":
                micros = sent.cast(pa.int64())
                return ReadColumn(micros, sent, _between(micros, *TIMESTAMP_RANGE_US))
            case "date":
                days = sent.cast(pa.int32())
                return ReadColumn(days, sent, _between(days, *DATE_RANGE_DAYS))
            case "bytea":
                return ReadColumn(_base64(sent), sent, None)
            case _:
                return self._number(sent)

    def _number(self, texts: pa.Array) -> ReadColumn:
        if self._kind.conversion is Conversion.DECIMAL:
            return self._formed(texts)
        is_number = pc.invert(pc.is_in(texts, _NO_NUMBERS))
        return ReadColumn(texts, texts, None if pc.all(is_number).as_py() else is_number)

    def _formed(self, sent: pa.Array) -> ReadColumn:
        """Read values that are sent in the changelog's form."""
        if self._is_json:
            return ReadColumn(sent, sent, pc.match_substring_regex(sent, _KEPT_LIST))
        if self._prove is None:
            return ReadColumn(sent, self._to_state(sent), None)
        proved = self._prove(sent)
        usual = pc.if_else(proved, sent, pa.scalar(None, sent.type))
        return ReadColumn(sent, self._to_state(usual), proved)

    def _to_state(self, values: pa.Array) -> pa.Array:
        return to_state(values, self._kind) if self._has_state else values


def _instants(micros: pa.Array, proved: pa.Array) -> pa.Array:
    is_plain = micros.null_count == 0 and pc.all(proved).as_py()
    known = micros if is_plain else pc.fill_null(pc.if_else(proved, micros, 0), 0)
    texts = instant_texts(known.to_numpy())
    return texts if is_plain else pc.if_else(proved, texts, pa.scalar(None, pa.string()))


def _base64(values: pa.Array) -> pa.Array:
    texts = (None if v is None else base64.b64encode(v).decode() for v in values.to_pylist())
    return pa.array(texts, pa.string())


def _between(numbers: pa.Array, lowest: int, greatest: int) -> pa.Array:
    return pc.and_(pc.greater_equal(numbers, lowest), pc.less_equal(numbers, greatest))


def _both(first: pa.Array | None, second: pa.Array) -> pa.Array:
    return second if first is None else pc.and_kleene(first, second)
