"""The fold: the events of each key reduced to its latest row, in Arrow.

The meaning is that of `cdclake.iceberg.latest_row.folded_rows`, which is SQL and makes the views: a
maximum over a total order, per row and per carried value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdclake import naming
from cdclake.debezium.position import HISTORY_LENGTH
from cdclake.iceberg.latest_row import NEWEST_FACTS, deletes_have_values
from cdclake.jobs.apply.state_values import to_state
from cdclake.jobs.iceberg.row_selection import RowNumbers
from cdclake.plan import Table

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FoldedChanges:
    """One row per key, by column of the state, without `cdc_toast_missing` and value positions."""

    columns: Mapping[str, pa.Array]
    # By carried column: position of its value; NULL if no event here since the row's creation has a
    # real one: an older value is of another row of the key.
    value_positions: Mapping[str, pa.Array]
    created: pa.Array  # position at which the key's newest row begins; "" if it is not known
    lacking: pa.Array  # some event of the key lacks a value

    def __len__(self) -> int:
        return len(self.lacking)


def fold(changes: pa.Table, table: Table, carried: Sequence[str], floor: str) -> FoldedChanges:
    """Fold changelog rows without truncates; with soft deletes, rows below `floor` are deleted."""
    changes = in_order(changes)
    columns = {name: changes.column(name).combine_chunks() for name in changes.column_names}
    keys = {c.name: to_state(columns[c.name], c.column_type) for c in table.key_columns}
    codes, count = group_codes(list(keys.values()))
    newest = _last_rows(codes, count, np.arange(len(changes)))
    latest = RowNumbers(newest, len(changes))
    folded = {name: latest.take(values) for name, values in keys.items()}
    folded[naming.POSITION] = latest.take(columns[naming.POSITION])
    folded |= {fact: latest.take(columns[fact]) for fact in NEWEST_FACTS}
    is_delete = pc.equal(folded[naming.OP], "d")
    has_deletes = pc.any(is_delete).as_py()
    folded[naming.DELETED] = _is_deleted(is_delete, folded[naming.POSITION], floor)
    is_gone = deleted_by_source(folded, table)  # the row of a deleted key lacks no value
    positions: dict[str, pa.Array] = {}
    born = _last_rows(codes, count, np.flatnonzero(_begins_row(columns, table)))
    created = columns[naming.POSITION].take(pa.array(born, mask=born < 0))
    for column in table.value_columns:
        if column.name in carried:
            has_value = np.flatnonzero(_available(columns, table, column.name))
            has_value = has_value[has_value >= born[codes[has_value]]]
            last = _last_rows(codes, count, has_value)
            rows = pa.array(last, mask=last < 0)
            held = columns[column.name].take(rows)
            found = columns[naming.POSITION].take(rows)
            positions[column.name] = pc.if_else(is_gone, folded[naming.POSITION], found)
        else:
            held = latest.take(columns[column.name])
            if has_deletes:
                held = pc.if_else(is_delete, pa.scalar(None, held.type), held)
        folded[column.name] = to_state(held, column.column_type)
    lacking = _grouped_any(codes, count, _lacks_values(columns, table))
    return FoldedChanges(folded, positions, pc.fill_null(created, ""), pa.array(lacking))


def in_order(changes: pa.Table) -> pa.Table:
    """Return the rows in the order of their positions; sorts only if they are not."""
    positions = changes.column(naming.POSITION).combine_chunks()
    rows = len(positions)
    if rows < 2 or pc.all(pc.less_equal(positions.slice(0, rows - 1), positions.slice(1))).as_py():
        return changes
    return changes.take(pc.sort_indices(positions))


def group_codes(keys: Sequence[pa.Array]) -> tuple[Rows, int]:
    """Return a number for each row, equal for equal keys, and how many keys there are."""
    codes: Rows | None = None
    for values in keys:
        is_float = pa.types.is_floating(values.type)
        encoded = (pc.add(values, 0.0) if is_float else values).dictionary_encode()  # -0.0 is 0.0
        own = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        mixed = own if codes is None else codes * (len(encoded.dictionary) + 1) + own
        distinct, codes = np.unique(mixed, return_inverse=True)
    assert codes is not None
    return codes.astype(np.int64), len(distinct)


def unavailable_in(column: pa.Array, name: str) -> npt.NDArray[np.bool_]:
    """Return which rows of `cdc_unavailable` list the column."""
    listed = np.zeros(len(column), bool)
    found = pc.equal(column.flatten(), name).to_numpy(zero_copy_only=False).astype(bool)
    listed[pc.list_parent_indices(column).to_numpy()[found]] = True
    return listed


def _available(columns: Mapping[str, pa.Array], table: Table, name: str) -> npt.NDArray[np.bool_]:
    available = ~unavailable_in(columns[naming.UNAVAILABLE], name)
    if deletes_have_values(table):
        return available
    return available & ~_flags(pc.equal(columns[naming.OP], "d"))


def _begins_row(columns: Mapping[str, pa.Array], table: Table) -> npt.NDArray[np.bool_]:
    """Return which events have the condition `latest_row.begins_row`."""
    creations = _flags(pc.equal(columns[naming.OP], "c"))
    return creations | _flags(deleted_by_source(columns, table))


def deleted_by_source(columns: Mapping[str, pa.Array], table: Table) -> pa.Array:
    """Return which rows have a delete of the source as their event; none with soft deletes."""
    is_delete = pc.equal(columns[naming.OP], "d")
    if table.deletes == "soft":
        return pc.and_(is_delete, False)
    return pc.and_(is_delete, pc.greater_equal(pc.fill_null(columns[naming.PARTITION], 0), 0))


def _lacks_values(columns: Mapping[str, pa.Array], table: Table) -> npt.NDArray[np.bool_]:
    lacking = _flags(pc.is_valid(columns[naming.UNAVAILABLE]))
    if table.deletes == "soft":  # the last values stay, but a delete's event lacks them
        return lacking | _flags(pc.equal(columns[naming.OP], "d"))
    return lacking


def _is_deleted(is_delete: pa.Array, positions: pa.Array, floor: str) -> pa.Array:
    if not floor:
        return is_delete
    return pc.or_(is_delete, pc.less(history_parts(positions), floor))


def history_parts(positions: pa.Array) -> pa.Array:
    """Return the positions without their offsets."""
    return pc.utf8_slice_codeunits(positions, 0, HISTORY_LENGTH)


def _last_rows(codes: Rows, count: int, rows: Rows) -> Rows:
    """Return for each key the last of these rows, which ascend; -1 if there is none."""
    last = np.full(count, -1, np.int64)
    last[codes[rows]] = rows  # of equal indices the last one counts
    return last


def _grouped_any(codes: Rows, count: int, flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    found = np.zeros(count, bool)
    found[codes[flags]] = True
    return found


def _flags(condition: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = condition.to_numpy(zero_copy_only=False).astype(bool)
    return found
