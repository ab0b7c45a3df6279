"""Whether an event has the fields that its table declares, each in the form that it declares.

`from_json` gives NULL for a field that is not there and for one of another type, and text for a
number where text is declared. Debezium writes every column of the source in a form that follows
from its type: so a field that is missing, or has another form, tells of a changed table.

What usually is there is proved by a search in the event's text (`PlainFields`). Only where that
leaves an event odd are its fields read a second time, by name (`NamedFields`): the plan of that
reading would cost every batch, however few its events.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.field_values import REAL_DIGITS, REAL_OFF
from cdclake.plan import Column, Table

ABSENT = "cdc__absent"  # declared columns of which the event has no field; NULL if it has them all
MISFITS = "cdc__misfits"  # declared columns whose field is of another type; NULL if none is
ODD = "cdc__odd"  # whether only a reading by name tells what the event has
_ROW = "cdc__row"  # the row that an event brings, or that a delete has whole
_FIELDS = "cdc__fields"  # the row's fields as text, where something looks odd

# Fields of such a name stand elsewhere in an event, too: to find one in its text proves nothing.
_ELSEWHERE = frozenset(
    {
        "before", "after", "source", "op", "transaction", "ts_ms", "ts_us", "ts_ns", "version",
        "connector", "name", "snapshot", "db", "sequence", "schema", "table", "txId", "lsn", "xmin",
        "origin", "x", "y", "wkb", "srid", naming.EPOCH,
    }
)  # fmt: skip
_NO_JSON_STRING = frozenset({"point", "vector", "bit"})  # text in the log all the same
_OVERFLOWING = frozenset({"smallint", "integer"})  # their own values never do, wider ones may
_NUMBER = "^-?[0-9][0-9.eE+-]*$"  # what JSON writes as one
_SCIENTIFIC = "^-?[0-9][.]([0-9]*?)0*e([+-][0-9]+)$"  # without zeros at its end


class PlainFields:
    """Expressions over a decoded event, right for all that are not `ODD`.

    `event` is its parsed value, `corrupt` a field of it that says it is none, `text` the text.
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
        """`ODD`: whether only a reading by name tells what the event has."""
        doubts = [doubt for column in self._table.columns for doubt in self._doubts(column)]
        is_odd = self._corrupt.isNotNull() | (self._has_row() & any_of(doubts))
        return F.coalesce(is_odd, F.lit(False)).alias(ODD)

    def steps(self) -> list[list[Expression]]:
        """What the other expressions refer to by name, step by step."""
        if not self._whole:
            return []
        before, after = F.col(f"{self._event}.before"), F.col(f"{self._event}.after")
        return [[F.when(self._op == "d", before).otherwise(after).alias(_ROW)]]

    def image(self, column: Column) -> Expression:
        """The column's value in `after`, or in the `before` of a delete that has the whole row."""
        return self._value(column.source)

    def absent(self) -> Expression:
        """`ABSENT`: nothing is."""
        return F.lit(None).cast("array<string>").alias(ABSENT)

    def findings(self) -> list[Expression]:
        """`ODD`, `ABSENT` and `MISFITS`."""
        return [self.is_odd(), self.absent(), self.misfits()]

    def is_unsent(self, column: Column) -> Expression:
        """Whether the event has a renamed column under none of its names."""
        return F.lit(False)

    def misfits(self) -> Expression:
        """`MISFITS`: nothing is."""
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
        """A value, or the text that says NULL, proves that the field of the present name is there.

        Short of that all fields are read. An earlier name proves nothing: the event may have both.
        """
        return self._value(column.source).isNull() & ~self._proves_null(column.source)

    def _proves_null(self, name: str) -> Expression:
        if name in _ELSEWHERE:
            return F.lit(False)
        return self._text.contains(f"{json_key(name)}:null")

    def _seems_of_another_form(self, column: Column, value: Expression) -> Expression | None:
        """A form that `from_json` takes all the same; None where there is no such form."""
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
    """The same expressions, right for every event: odd ones are read a second time, by name."""

    def steps(self) -> list[list[Expression]]:
        """And the row's fields as text, if the event is odd."""
        fields = F.from_json(self._row_text(), "map<string,string>")
        return [*super().steps(), [self.is_odd()], [F.when(F.col(ODD), fields).alias(_FIELDS)]]

    def findings(self) -> list[Expression]:
        """`ABSENT` and `MISFITS`; `ODD` is there."""
        return [self.absent(), self.misfits()]

    def image(self, column: Column) -> Expression:
        """The column's value, under whatever name the event has it."""
        value = self._value(column.source)
        if not column.renamed_from:
            return value
        is_null = self._proves_null(column.source) | self._has(column.source)
        earlier = F.coalesce(*(self._value(name) for name in column.names[1:]))
        return F.when(value.isNotNull() | is_null, value).otherwise(earlier)

    def absent(self) -> Expression:
        """`ABSENT`: by its present name, whatever the event has under an earlier one."""
        listed = [F.when(~self._has(c.source), F.lit(c.source)) for c in self._table.columns]
        absent = F.array_compact(F.array(*listed))
        was_read = F.col(_FIELDS).isNotNull()
        return F.when(was_read & (F.size(absent) > 0), absent).alias(ABSENT)

    def is_unsent(self, column: Column) -> Expression:
        """Whether the event has a renamed column under none of its names."""
        found = any_of([self._has(name) for name in column.names])
        return F.col(_FIELDS).isNotNull() & ~found

    def misfits(self) -> Expression:
        """`MISFITS`, by the columns' present names."""
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
        """The event has a value that no column of the declared type is written as."""
        value = self.image(column)
        raw = F.coalesce(*(F.col(_FIELDS).getItem(name) for name in column.names))
        lost = value.isNull() & raw.isNotNull()
        if column.column_type.base in _OVERFLOWING:  # too large, which one value may be
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
    """As `field_values.is_written_as_real`, of a double."""
    # Not as a string: before Java 19 some doubles of few digits become strings of 17.
    text = F.format_string(f"%.{REAL_DIGITS - 1}e", value)
    fraction, power = (F.regexp_extract(text, _SCIENTIFIC, part) for part in (1, 2))
    last = F.pow(F.lit(10.0), power.cast("int") - F.length(fraction))
    off = F.abs(value - value.cast("float").cast("double"))
    return (text.cast("double") == value) & (off <= REAL_OFF * last)


def json_key(name: str) -> str:
    """The field's name as a JSON converter writes it."""
    return json.dumps(name, ensure_ascii=False)


def any_of(conditions: Sequence[Expression]) -> Expression:
    """Whether one holds; halved and halved again, for a chain of hundreds would nest as deep."""
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return any_of(conditions[:half]) | any_of(conditions[half:])
