"""Rows of the state from folded changes and from stored rows, in Arrow.

Every column takes the value of the greater position, so a replay or another order has no effect.
The meaning is that of `cdclake.iceberg.state_rows`, which is SQL and serves MERGE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdclake import naming
from cdclake.iceberg.latest_row import NEWEST_FACTS
from cdclake.jobs.apply.folded_changes import FoldedChanges, deleted_by_source
from cdclake.plan import Table

_MISSING = ""  # position of a value that no event has had yet: below every real one
_TEXTS = pa.list_(pa.string())
_POSITIONS = pa.map_(pa.string(), pa.string())
ROW_FACTS = (*NEWEST_FACTS, naming.POSITION, naming.DELETED)


def new_rows(folded: FoldedChanges) -> pa.Table:
    """Return the rows of keys that have no stored row, or one that is older in every value."""
    positions = {
        column: pc.fill_null(at, _MISSING) for column, at in folded.value_positions.items()
    }
    facts = _value_facts(positions, folded.columns[naming.POSITION])
    return pa.table({**folded.columns, **facts})


def mixed_rows(
    folded: FoldedChanges, stored: pa.Table, table: Table, dropped: Sequence[str]
) -> tuple[pa.Table, pa.Array]:
    """Combine each folded row with the stored row of the same number.

    Returns all rows, and which of them the changes alter. `dropped` are columns that only the
    stored rows have: a value of an earlier row of the key is not the new row's.
    """
    s, t = folded.columns, {name: _column(stored, name) for name in stored.column_names}
    at_s, at_t = s[naming.POSITION], t[naming.POSITION]
    is_newer = pc.greater(at_s, at_t)
    altered = is_newer
    is_gone = pc.and_(is_newer, deleted_by_source(t, table))
    # A delete that comes late ended an earlier row, and has no value of this one.
    is_late = pc.and_(deleted_by_source(s, table), pc.invert(is_newer))
    rows: dict[str, pa.Array] = {name: s[name] for name in table.key}
    positions: dict[str, pa.Array] = {}
    for column in (c.name for c in table.value_columns):
        old = _cast(t[column], s[column]) if column in t else _nulls(s[column])
        newer = is_newer
        if column in folded.value_positions:
            brought = folded.value_positions[column]
            brought = pc.if_else(is_late, pa.scalar(None, brought.type), brought)
            kept = pc.coalesce(_stored_position(t[naming.VALUE_POSITIONS], column), at_t)
            # The stored value is of an earlier row of the key, or of none.
            is_other = pc.or_(pc.greater(folded.created, kept), is_gone)
            newer = pc.or_(_value_is_newer(brought, kept, s[column], old), is_other)
            kept = pc.if_else(is_other, _MISSING, kept)
            positions[column] = pc.max_element_wise(kept, brought)  # skips NULL
            altered = pc.or_(altered, newer)
        rows[column] = pc.if_else(newer, s[column], old)
    for fact in ROW_FACTS:
        # Equal positions: an event that was completed again.
        newer = pc.greater_equal(at_s, at_t) if fact == naming.UNAVAILABLE else is_newer
        rows[fact] = pc.if_else(newer, s[fact], _cast(t[fact], s[fact]))
    rows |= _dropped_values(t, dropped, pc.or_(pc.greater(folded.created, at_t), is_gone))
    facts = _value_facts(positions, rows[naming.POSITION])
    return pa.table({**rows, **facts}), altered


def _dropped_values(
    stored: Mapping[str, pa.Array], dropped: Sequence[str], is_other: pa.Array
) -> dict[str, pa.Array]:
    """Return the stored values, NULL where the stored row is another one than the new row."""
    return {
        name: pc.if_else(is_other, pa.scalar(None, stored[name].type), stored[name])
        for name in dropped
        if name in stored
    }


def _value_is_newer(brought: pa.Array, kept: pa.Array, value: pa.Array, old: pa.Array) -> pa.Array:
    """Return whether the change's value is newer, or equally new and another one.

    A late or replayed event may complete the same creation of a changed key again.
    """
    same = pc.fill_null(pc.equal(value, old), False)
    same = pc.or_(same, pc.and_(pc.is_null(value), pc.is_null(old)))
    again = pc.and_(pc.equal(brought, kept), pc.invert(same))
    return pc.fill_null(pc.or_(pc.greater(brought, kept), again), False)


def _value_facts(positions: Mapping[str, pa.Array], at: pa.Array) -> dict[str, pa.Array]:
    """Return `cdc_toast_missing` and `cdc_value_positions` from the carried values' positions."""
    rows = len(at)
    missing: list[list[str] | None] = [None] * rows
    older: list[list[tuple[str, str]] | None] = [None] * rows
    for column, positions_of in positions.items():
        for index in _where(pc.equal(positions_of, _MISSING)):
            missing[index] = [*(missing[index] or []), column]
        for index in _where(pc.not_equal(positions_of, at)):
            older[index] = [*(older[index] or []), (column, positions_of[index].as_py())]
    return {
        naming.TOAST_MISSING: pa.array(missing, _TEXTS),
        naming.VALUE_POSITIONS: pa.array(older, _POSITIONS),
    }


def _stored_position(maps: pa.Array, column: str) -> pa.Array:
    if maps.null_count == len(maps):
        return pa.nulls(len(maps), pa.string())
    found = [None if each is None else dict(each).get(column) for each in maps.to_pylist()]
    return pa.array(found, pa.string())


def _where(condition: pa.Array) -> list[int]:
    flags = pc.fill_null(condition, False).to_numpy(zero_copy_only=False)
    return [int(index) for index in np.flatnonzero(flags)]


def _column(stored: pa.Table, name: str) -> pa.Array:
    return stored.column(name).combine_chunks()


def _cast(values: pa.Array, like: pa.Array) -> pa.Array:
    return values if values.type == like.type else values.cast(like.type)


def _nulls(like: pa.Array) -> pa.Array:
    return pa.nulls(len(like), like.type)
