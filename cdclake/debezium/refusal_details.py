"""Every reason why an event is refused, with its column and value, for a reader.

The quarantine keeps the first reason, for counting. These are found again from the event's bytes
and the current declaration. The value of a masked column is never among them: an event that was
quarantined before the mask was declared has its clear text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cdclake.debezium import refusals
from cdclake.debezium.changelog_rows import Place
from cdclake.debezium.event_parts import field_of, json_object, row_image
from cdclake.debezium.field_values import holds, reader
from cdclake.debezium.refusals import RefusedEvent
from cdclake.debezium.row_rules import RowRules
from cdclake.debezium.stream_rows import StreamRows
from cdclake.debezium.toast_placeholder import refuses_unsent, unavailable_forms
from cdclake.plan import Column, Plan, Table

_MASKED = "(masked)"
# Debezium's names of a numeric's special values, and PostgreSQL's.
_SPECIAL_NUMERICS = {
    "NAN": "NaN", "POSITIVE_INFINITY": "Infinity", "NEGATIVE_INFINITY": "-Infinity"
}  # fmt: skip


class RefusalDetail(NamedTuple):
    """One reason; without a column it is about the whole event."""

    reason: str
    column: str | None = None
    value: str | None = None


class RefusalDetails:
    """Reasons of one table's events."""

    def __init__(self, table: Table, plan: Plan) -> None:
        self._table, self._plan = table, plan
        self._rows = StreamRows(table, plan)
        self._rules = RowRules(table).rules

    def key(self, key: bytes | None, value: bytes | None) -> Mapping[str, Any] | None:
        """Return the key's columns and values; None if neither key nor row is readable."""
        fields = json_object(key) if key is not None else row_image(json_object(value))
        if fields is None:
            return None
        return {column.name: field_of(column, fields) for column in self._table.key_columns}

    def reasons(self, key: bytes | None, value: bytes | None) -> list[RefusalDetail]:
        """Return every reason of the current declaration; none for an event that it accepts."""
        decoded = self._rows.row(key, value, Place(0, 0))
        if decoded is None or decoded.refusal is None:
            return []
        return self.recorded(decoded.refusal, value)

    def recorded(self, reason: str, value: bytes | None) -> list[RefusalDetail]:
        """Return the recorded reason and the column errors under the current declaration."""
        first = refusals.without_value(reason)
        found = list(self._of_columns(row_image(json_object(value)) or {}))
        is_covered = any(detail.reason == first for detail in found)
        # The event is refused as a whole because of the fields that are found here.
        is_unreadable = first == refusals.UNREADABLE_VALUE and bool(found)
        return found if is_covered or is_unreadable else [RefusalDetail(first), *found]

    def _of_columns(self, image: Mapping[str, Any]) -> Iterator[RefusalDetail]:
        values: dict[str, Any] = {}
        unsent: set[str] = set()
        for column in self._table.columns:
            yield from self._of_column(column, field_of(column, image), values, unsent)
        for name, column, breaks in self._rules:
            if column.name not in unsent and breaks(values.get(column.name)):
                reason = refusals.without_value(refusals.broken_rule(name, column, ""))
                yield RefusalDetail(reason, column.name, _text(column, values.get(column.name)))

    def _of_column(
        self, column: Column, field: Any, values: dict[str, Any], unsent: set[str]
    ) -> Iterator[RefusalDetail]:
        """Yield what is wrong with one field, and note its value."""
        if field is None:
            return
        kind = column.column_type
        try:
            value = reader(kind, non_finite=True)(field)
        except RefusedEvent:
            yield RefusalDetail(refusals.wrong_type(column.name, column.type), column.name,
                                _text(column, field))  # fmt: skip
            return
        if kind.toastable and value in unavailable_forms(kind, self._plan.placeholder):
            unsent.add(column.name)
            if refuses_unsent(self._table):
                yield RefusalDetail(refusals.unsent_value(column), column.name)
            return
        values[column.name] = value
        held = holds(kind) if self._plan.refuses_unheld(self._table, column) else None
        if held is not None and not held(value):
            reason = refusals.not_representable(column, self._table)
            yield RefusalDetail(reason, column.name, _text(column, value))


def _text(column: Column, value: Any) -> str:
    if column.mask is not None:
        return _MASKED
    text = "NULL" if value is None else str(value)
    if column.column_type.base == "numeric":
        text = _SPECIAL_NUMERICS.get(text, text)
    is_long = len(text) > refusals.MAX_VALUE_CHARACTERS
    return f"{text[: refusals.MAX_VALUE_CHARACTERS]}..." if is_long else text
