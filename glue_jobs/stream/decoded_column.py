"""Fast decoding of one column of a block of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdclake.debezium.toast_placeholder import (
    is_lost_when_unsent,
    refuses_unsent,
    unavailable_forms,
)
from cdclake.jobs.apply.representable_values import representable
from cdclake.jobs.stream.block_arrays import Flags
from cdclake.jobs.stream.value_proofs import is_real, kept_text
from cdclake.plan import Column, Plan, Table

_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float64(),  # as a real, a wider number would be rounded in silence
    "double": pa.float64(),
    "string": pa.string(),
}


class DecodedColumn(NamedTuple):
    """Values in the changelog's type; flags by event, None if there are none."""

    values: pa.Array
    unproved: Flags | None
    unsent: Flags | None


class ColumnDecoder:
    """Decoder of one column."""

    def __init__(self, column: Column, table: Table, plan: Plan) -> None:
        kind, self._is_key = column.column_type, column.name in table.key
        self.name = column.name
        self.is_lost_when_unsent = not (self._is_key or column.is_nulled) and is_lost_when_unsent(
            kind
        )
        self._kind = kind
        self._refuses_unsent = refuses_unsent(table)
        may_be_unsent = kind.toastable and not self._is_key
        forms = unavailable_forms(kind, plan.placeholder) if may_be_unsent else ()
        self._placeholders = pa.array(forms, pa.string()) if forms else None
        self._is_held = representable(kind) if plan.refuses_unheld(table, column) else None

    def decode(self, found: Sequence[Any]) -> DecodedColumn:
        """Decode the column's values in the events' rows."""
        values, unproved = self._values(found)
        unsent = None
        if self._placeholders is not None:
            is_unsent = pc.is_in(values, value_set=self._placeholders)
            if pc.any(is_unsent).as_py():
                unsent = _flags(is_unsent)
                values = pc.if_else(is_unsent, pa.scalar(None, values.type), values)
        if unsent is not None and self._refuses_unsent:
            unproved, unsent = _either(unproved, unsent), None
        if self._is_held is not None:
            unproved = _either(unproved, _where_false(self._is_held(values)))
        if self._is_key and values.null_count:
            unproved = _either(unproved, _flags(pc.is_null(values)))
        return DecodedColumn(values, unproved, unsent)

    def _values(self, found: Sequence[Any]) -> tuple[pa.Array, Flags | None]:
        if self._kind.has_any_form:
            return self._texts(found)
        values = pa.array(found, _TYPES[self._kind.log])
        if self._kind.log != "float":
            return values, None
        reals = values.cast(pa.float32())
        return reals, _where_false(is_real(values, reals))

    def _texts(self, found: Sequence[Any]) -> tuple[pa.Array, Flags | None]:
        texts: list[str | None] = []
        unproved = []
        for index, raw in enumerate(found):
            try:
                texts.append(kept_text(raw, self._kind))
            except ValueError:
                texts.append(None)
                unproved.append(index)
        flags = np.zeros(len(found), bool)
        flags[unproved] = True
        return pa.array(texts, pa.string()), flags if unproved else None


def _flags(condition: pa.Array) -> Flags:
    flags: Flags = condition.to_numpy(zero_copy_only=False).astype(bool)
    return flags


def _where_false(condition: pa.Array) -> Flags | None:
    """Return where the condition is false, which NULL is not; None if it is false nowhere."""
    if pc.all(condition, min_count=0).as_py():  # skips NULL
        return None
    return ~_flags(condition.fill_null(True))


def _either(one: Flags | None, other: Flags | None) -> Flags | None:
    if one is None or other is None:
        return other if one is None else one
    return one | other
