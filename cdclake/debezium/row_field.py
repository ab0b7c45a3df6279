"""Field of a column in an event's row, as both decoders of single events read it.

It decides which values count as unsent, which ones the state's type must hold, and which columns
lose their value when it is not sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from cdclake.debezium.field_values import Read, holds, reader
from cdclake.debezium.toast_placeholder import is_lost_when_unsent, unavailable_forms
from cdclake.plan import Column, Plan, Table


class RowField(NamedTuple):
    """Column with the decoder of its field."""

    column: Column
    name: str
    source: str
    is_key: bool
    read: Read
    unsent: frozenset[str]  # placeholders of an unsent value
    holds: Callable[[Any], bool] | None
    is_lost_when_unsent: bool

    @staticmethod
    def of(column: Column, table: Table, plan: Plan, *, non_finite: bool = False) -> RowField:
        """Return the column's field; unless `non_finite` it refuses NaN and infinities."""
        kind, is_key = column.column_type, column.name in table.key
        may_be_unsent = kind.toastable and not is_key
        return RowField(
            column=column,
            name=column.name,
            source=column.source,
            is_key=is_key,
            read=reader(kind, non_finite=non_finite),
            unsent=frozenset(unavailable_forms(kind, plan.placeholder) if may_be_unsent else ()),
            holds=holds(kind) if plan.refuses_unheld(table, column) else None,
            is_lost_when_unsent=not (is_key or column.is_nulled) and is_lost_when_unsent(kind),
        )
