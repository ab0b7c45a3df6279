"""Detection of missing fields, and of fields in another form than the declared one.

`from_json` gives NULL for a missing field and for one of another type, and text for a number where
text is declared. Debezium writes every column of the source in a form that follows from its type:
a missing field, or one in another form, means that the table has changed.

A search in the event's text proves that the fields are there (`PlainFields`). Only if that leaves
an event odd, its fields are read again by name (`NamedFields`): planning that for every batch would
be expensive even for few events.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.field_values import REAL_DIGITS, REAL_OFF
from cdclake.plan import Column, Table

ABSENT = "cdc__absent"  # declared columns without a field in the event; NULL if there are none
MISFITS = "cdc__misfits"  # declared columns whose field has another type; NULL if none
ODD = "cdc__odd"  # whether the fields must be read by name
_ROW = "cdc__row"  # the event's row, or the whole row of a delete
_FIELDS = "cdc__fields"  # the row's fields as text, for odd events

# Events have fields of these names elsewhere, too: finding one in the text proves nothing.
_ELSEWHERE = frozenset(
    {
        "before", "after", "source", "op", "transaction", "ts_ms", "ts_us", "ts_ns", "version",
        "connector", "name", "snapshot", "db", "sequence", "schema", "table", "txId", "lsn", "xmin",
        "origin", "x", "y", "wkb", "srid", naming.EPOCH,
    }
)  # fmt: skip
_NO_JSON_STRING = frozenset({"point", "vector", "bit"})  # text in the changelog all the same
_OVERFLOWING = frozenset({"smallint", "integer"})  # values of wider types may overflow
_NUMBER = "^-?[0-9][0-9.eE+-]*$"  # a number in JSON
_SCIENTIFIC = "^-?[0-9][.]([0-9]*?)0*e([+-][0-9]+)$"  # without zeros at its end


class PlainFields:
    """Expressions over a decoded event, correct unless the event is `ODD`.

    `event` is its parsed value, `corrupt` the corrupt-record field in it, `text` the text.
    """

    def __init__(self, table: Table, *, event: str, text: str, corrupt: str) -> None:
        self._table = table
        self._event = event
        self._op = F.col(f"{event}.op")
        self._text = F.col(text)
        self._corrupt = F.col(f"{event}.{corrupt}")
        self._whole = table.replica_identity == "full"
        self._row = F.col(_ROW if self._whole else f"{event}.after")

    def is_odd(self) -> Expression:
        """Return `ODD`: whether the event's fields must be read by name."""
        doubts = [doubt for column in self._table.columns for doubt in self._doubts(column)]
        is_odd = self._corrupt.isNotNull() | (self._has_row() & any_of(doubts))
        return F.coalesce(is_odd, F.lit(False)).alias(ODD)

    def steps(self) -> list[list[Expression]]:
        """Return columns that the other expressions refer to, step by step."""
        if not self._whole:
            return []
        before, after = F.col(f"{self._event}.before"), F.col(f"{self._event}.after")
        return [[F.when(self._op == "d", before).otherwise(after).alias(_ROW)]]

    def image(self, column: Column) -> Expression:
        """Return the column's value in `after`, or in `before` for a delete with the whole row."""
        return self._value(column.source)

    def absent(self) -> Expression:
        """Return `ABSENT`, which is always NULL here."""
        return F.lit(None).cast("array<string>").alias(ABSENT)

    def findings(self) -> list[Expression]:
        """Return `ODD`, `ABSENT` and `MISFITS`."""
        return [self.is_odd(), self.absent(), self.misfits()]

    def is_unsent(self, column: Column) -> Expression:
        """Return whether the event has a renamed column under none of its names."""
        return F.lit(False)

    def misfits(self) -> Expression:
        """Return `MISFITS`, which is always NULL here."""
        return F.lit(None).cast("array<string>").alias(MISFITS)

    def _doubts(self, column: Column) -> list[Expression]:
        value = self._value(column.source)
        is_other = self._seems_of_another_form(column, value)
        return [self._seems_absent(column), *([] if is_other is None else [is_other])]

    def _has_row(self) -> Expression:
        return self._op.isin("c", "u", "r", *(["d"] if self._whole else []))

    def _value(self, name: str) -> Expression:
        return self._row.getField(name)

    def _seems_absent(self, column: Column) -> Expression:
        """Return false if a value, or NULL in the text, proves that the current name is there.

        Otherwise all fields are read. An earlier name proves nothing: the event may have both.
        """
        return self._value(column.source).isNull() & ~self._proves_null(column.source)

    def _proves_null(self, name: str) -> Expression:
        if name in _ELSEWHERE:
            return F.lit(False)
        return self._text.contains(f"{json_key(name)}:null")

    def _seems_of_another_form(self, column: Column, value: Expression) -> Expression | None:
        """Match another form that `from_json` still accepts; None if there is no such form."""
        kind = column.column_type
        if kind.log == "float":
            return value.cast("float").cast("string") != value.cast("string")
        if kind.log != "string" or kind.array or kind.base in _NO_JSON_STRING:
            return None
        first = F.ascii(value)
        is_number = first.between(ord("-"), ord("9")) & value.rlike(_NUMBER)
        looks_so = is_number | first.isin(ord("["), ord("{")) | value.isin("true", "false")
        if column.source in _ELSEWHERE:
            return looks_so
        return looks_so & ~self._text.contains(f'{json_key(column.source)}:"')


class NamedFields(PlainFields):
    """The same expressions, correct for every event: odd ones are read again by name."""

    def steps(self) -> list[list[Expression]]:
        """Add the row's fields as text if the event is odd."""
        fields = F.from_json(self._row_text(), "map<string,string>")
        return [*super().steps(), [self.is_odd()], [F.when(F.col(ODD), fields).alias(_FIELDS)]]

    def findings(self) -> list[Expression]:
        """Return `ABSENT` and `MISFITS`; `ODD` exists already."""
        return [self.absent(), self.misfits()]

    def image(self, column: Column) -> Expression:
        """Return the column's value under its current or an earlier name."""
        value = self._value(column.source)
        if not column.renamed_from:
            return value
        is_null = self._proves_null(column.source) | self._has(column.source)
        earlier = F.coalesce(*(self._value(name) for name in column.names[1:]))
        return F.when(value.isNotNull() | is_null, value).otherwise(earlier)

    def absent(self) -> Expression:
        """Return `ABSENT` by current names, regardless of fields under earlier ones."""
        listed = [F.when(~self._has(c.source), F.lit(c.source)) for c in self._table.columns]
        absent = F.array_compact(F.array(*listed))
        was_read = F.col(_FIELDS).isNotNull()
        return F.when(was_read & (F.size(absent) > 0), absent).alias(ABSENT)

    def is_unsent(self, column: Column) -> Expression:
        """Return whether the event has a renamed column under none of its names."""
        found = any_of([self._has(name) for name in column.names])
        return F.col(_FIELDS).isNotNull() & ~found

    def misfits(self) -> Expression:
        """Return `MISFITS` by the columns' current names."""
        listed = [F.when(self._is_misfit(c), F.lit(c.source)) for c in self._table.columns]
        misfits = F.array_compact(F.array(*listed))
        return F.when(F.size(misfits) > 0, misfits).alias(MISFITS)

    def _row_text(self) -> Expression:
        row = F.when(self._op.isin("c", "u", "r"), F.get_json_object(self._text, "$.after"))
        if self._whole:
            row = row.when(self._op == "d", F.get_json_object(self._text, "$.before"))
        return row

    def _has(self, name: str) -> Expression:
        return F.coalesce(F.map_contains_key(_FIELDS, name), F.lit(False))

    def _is_misfit(self, column: Column) -> Expression:
        """Match values that a column of the declared type cannot have."""
        value = self.image(column)
        raw = F.coalesce(*(F.col(_FIELDS).getItem(name) for name in column.names))
        lost = value.isNull() & raw.isNotNull()
        if column.column_type.base in _OVERFLOWING:  # a single value may be too large
            lost &= ~raw.rlike("^-?[0-9]+$")
        other = self._is_of_another_form(column, value)
        return lost if other is None else lost | (value.isNotNull() & other)

    def _is_of_another_form(self, column: Column, value: Expression) -> Expression | None:
        seems_so = self._seems_of_another_form(column, value)
        if seems_so is None:
            return None
        if column.column_type.log == "float":
            return seems_so & ~_is_written_as_real(value)
        row = self._row_text()
        return seems_so & ~any_of([row.contains(f'{json_key(name)}:"') for name in column.names])


def _is_written_as_real(value: Expression) -> Expression:
    """Apply `field_values.is_written_as_real` to a double."""
    # Not as a string: before Java 19 some doubles of few digits become strings of 17 digits.
    text = F.format_string(f"%.{REAL_DIGITS - 1}e", value)
    fraction, power = (F.regexp_extract(text, _SCIENTIFIC, part) for part in (1, 2))
    last = F.pow(F.lit(10.0), power.cast("int") - F.length(fraction))
    off = F.abs(value - value.cast("float").cast("double"))
    return (text.cast("double") == value) & (off <= REAL_OFF * last)


def json_key(name: str) -> str:
    """Return the field's name as a JSON converter writes it."""
    return json.dumps(name, ensure_ascii=False)


def any_of(conditions: Sequence[Expression]) -> Expression:
    """Combine with OR as a balanced tree, since a chain of hundreds would nest too deeply."""
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return any_of(conditions[:half]) | any_of(conditions[half:])
