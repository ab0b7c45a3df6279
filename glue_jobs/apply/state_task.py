"""Work of one Spark task: bring changes of states into new files, and mark the rows they replace.

A task reads changelog files, folds them, looks the keys up in the state's data files and writes
files of rows and a file of position deletes for each partition. The driver commits them.

The values of stored rows may need far more memory than the changes, so a file of rows is written as
soon as MAX_HELD_BYTES are held, and only a large update has several of a partition.

Of a key's rows in the data files at most one is alive, and it is in the file with the greatest data
sequence number that has the key: every commit that writes a key also deletes its row in older
files. That row may be dead, too (`deleted_places`).
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdclake import naming
from cdclake.jobs.apply.deleted_places import deleted_places
from cdclake.jobs.apply.folded_changes import FoldedChanges, fold, history_parts
from cdclake.jobs.apply.key_index import KeyIndexes, WantedKeys, index_name
from cdclake.jobs.apply.mixed_rows import ROW_FACTS, mixed_rows, new_rows
from cdclake.jobs.apply.pending_facts import PendingFacts, facts_of
from cdclake.jobs.apply.stored_rows import read_key_columns, read_places
from cdclake.jobs.iceberg.data_file import Delta, LiveFile, path_of
from cdclake.jobs.iceberg.file_target import FileTarget
from cdclake.jobs.iceberg.parquet_file import arrow_schema
from cdclake.jobs.iceberg.row_selection import RowNumbers, filtered
from cdclake.plan import Table

log = logging.getLogger("cdclake.state")

Numbers = npt.NDArray[np.int64]
STATE_FACTS = (*ROW_FACTS, naming.TOAST_MISSING, naming.VALUE_POSITIONS)
MAX_HELD_BYTES = 128 << 20  # of rows that no file has yet
_INDEXES: list[KeyIndexes] = []  # of this Python worker


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTarget:
    """State that a task updates, as of one snapshot."""

    table: Table
    file: FileTarget
    snapshot_id: int | None  # whose files these are; None: the state is empty
    data_files: Sequence[LiveFile]  # by ascending sequence number
    delete_files: Sequence[str]
    carried: Sequence[str]  # columns that may have a value older than their row
    newest: str  # no stored row has, or ever had, a greater position
    floor: str  # of the newest truncate or sweep that is applied


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenState:
    """Files that a task has written; nothing is committed."""

    facts: PendingFacts
    carried: Sequence[str]
    delta: Delta


@dataclass(slots=True)
class _Hits:
    """Stored rows of the changes' keys: file and row number, by number of the key; -1: none."""

    files: Numbers
    rows: Numbers

    @property
    def found(self) -> npt.NDArray[np.bool_]:
        return self.files >= 0


def update_state(target: StateTarget, changes: pa.Table) -> WrittenState:
    """Write files that bring changelog rows without truncates into the state."""
    facts = facts_of(changes)
    carried = carried_columns(target.table, {*target.carried, *facts.unavailable})
    changes = _above(changes, target)
    if not changes.num_rows:
        return WrittenState(facts=facts, carried=carried, delta=Delta())
    soft_floor = target.floor if target.table.deletes == "soft" else ""
    folded = fold(changes, target.table, carried, soft_floor)
    schema = arrow_schema(target.file.schema)
    work = _Work(target, folded, schema, is_ahead=facts.lowest > target.newest)
    return work.write(facts, carried)


def carried_columns(table: Table, unavailable: set[str]) -> tuple[str, ...]:
    """Select the TOAST columns that were ever unavailable; with soft deletes all of them."""
    if table.deletes == "soft":
        return table.toastable
    return tuple(column for column in table.toastable if column in unavailable)


def _above(changes: pa.Table, target: StateTarget) -> pa.Table:
    """Leave out truncates, and rows below the floor; with soft deletes these matter as well."""
    is_change = pc.not_equal(changes.column(naming.OP), "t")
    if target.floor and target.table.deletes != "soft":
        at = changes.column(naming.POSITION).combine_chunks()
        is_change = pc.and_(is_change, pc.greater_equal(history_parts(at), target.floor))
    return filtered(changes, is_change)


@dataclass(slots=True)
class _Work:
    """Update of one state by one set of changes."""

    target: StateTarget
    folded: FoldedChanges
    schema: pa.Schema  # of the state, dropped columns among them
    is_ahead: bool  # every change is newer than whatever is stored
    _rows: list[pa.Table] = field(default_factory=list)  # that no file has yet
    _files: list[str] = field(default_factory=list)
    _places: dict[int, list[Numbers]] = field(default_factory=lambda: defaultdict(list))

    def write(self, facts: PendingFacts, carried: Sequence[str]) -> WrittenState:
        hits = self._look_up()
        mixed = self._are_mixed(hits)
        whole = np.flatnonzero(~mixed)
        self._add(new_rows(_taken(self.folded, whole)))
        replaced = np.flatnonzero(~mixed & hits.found)
        self._replace(hits, replaced)
        if mixed.any():
            self._mix(hits, np.flatnonzero(mixed))
        self._write_rows()
        delta = Delta(
            data_files=self._files,
            delete_files=self._write_deletes(),
            replaced_in=[self.target.data_files[number].path for number in sorted(self._places)],
        )
        return WrittenState(facts=facts, carried=carried, delta=delta)

    def _add(self, rows: pa.Table) -> None:
        self._rows.append(rows)
        if sum(each.nbytes for each in self._rows) >= MAX_HELD_BYTES:
            self._write_rows()

    def _write_rows(self) -> None:
        """Write the held rows, if any, and release them."""
        rows = pa.concat_tables(self._rows, promote_options="default") if self._rows else None
        self._rows.clear()
        if rows is None or not rows.num_rows:
            return
        for description, part in self.target.file.write_partitions(rows):
            self._files.append(description)
            key = self.target.table.key
            keys = [part.column(name).combine_chunks() for name in key]
            _indexes().put(index_name(path_of(description), key), keys)

    def _look_up(self) -> _Hits:
        """Find each key's row in the newest file that has one."""
        key = self.target.table.key
        wanted = WantedKeys([self.folded.columns[name] for name in key])
        storage = self.target.file.storage

        def read_keys(path: str) -> list[pa.Array]:
            return read_key_columns(storage, path, key, self.schema)

        files = {index_name(file.path, key): file.path for file in self.target.data_files}
        _indexes().make([*files], wanted.kind, lambda name: read_keys(files[name]))
        hits = _Hits(*(np.full(len(self.folded), -1, np.int64) for _ in range(2)))
        for number, (name, path) in enumerate(files.items()):
            mine, rows = _indexes().look_up(name, wanted, partial(read_keys, path))
            hits.files[mine], hits.rows[mine] = number, rows
        self._leave_out_dead(hits)
        return hits

    def _leave_out_dead(self, hits: _Hits) -> None:
        target = self.target
        deleted = deleted_places(target.file.folder, target.file.storage, target.delete_files)
        for number in np.unique(hits.files[hits.found]):
            mine = np.flatnonzero(hits.files == number)
            path = target.data_files[int(number)].path
            hits.files[mine[deleted.are_deleted(path, hits.rows[mine])]] = -1

    def _are_mixed(self, hits: _Hits) -> npt.NDArray[np.bool_]:
        """Return which keys' new rows may have values of the stored row."""
        if self._dropped() or not self.is_ahead:
            return hits.found
        lacking: npt.NDArray[np.bool_] = self.folded.lacking.to_numpy(zero_copy_only=False)
        return hits.found & lacking

    def _mix(self, hits: _Hits, keys: Numbers) -> None:
        """Combine changes with stored rows."""
        for number in np.unique(hits.files[keys]):
            of_file = keys[hits.files[keys] == number]
            in_order = of_file[np.argsort(hits.rows[of_file], kind="stable")]
            self._mix_file(int(number), hits, in_order)

    def _mix_file(self, number: int, hits: _Hits, keys: Numbers) -> None:
        file = self.target.data_files[number]
        storage = self.target.file.storage
        for stored in read_places(storage, file.path, hits.rows[keys], self.schema):
            mine, keys = np.split(keys, [stored.num_rows])
            changes = _taken(self.folded, mine)
            rows, altered = mixed_rows(changes, stored, self.target.table, self._dropped())
            self._add(rows.filter(altered))
            flags = altered.to_numpy(zero_copy_only=False)
            self._replace(hits, mine[flags])

    def _replace(self, hits: _Hits, keys: Numbers) -> None:
        for number in np.unique(hits.files[keys]):
            mine = keys[hits.files[keys] == number]
            self._places[int(number)].append(hits.rows[mine])

    def _write_deletes(self) -> list[str]:
        """Write a file of deletes for each partition with replaced rows."""
        groups: dict[str, dict[int, Numbers]] = defaultdict(dict)
        for number, rows in self._places.items():
            file = self.target.data_files[number]
            group = f"{file.spec_id} {sorted(file.partition.items())}"
            groups[group][number] = np.concatenate(rows)
        files = self.target.data_files
        return [
            self.target.file.write_deletes(
                {files[number].path: rows for number, rows in group.items()},
                like=files[min(group)],
            )
            for group in groups.values()
        ]

    def _dropped(self) -> list[str]:
        """List the dropped columns, whose values stay with their rows (decision 12)."""
        declared = {*(column.name for column in self.target.table.columns), *STATE_FACTS}
        return [column for column in self.schema.names if column not in declared]


def _taken(folded: FoldedChanges, keys: Numbers) -> FoldedChanges:
    rows = RowNumbers(keys, len(folded))
    return FoldedChanges(
        {name: rows.take(values) for name, values in folded.columns.items()},
        {name: rows.take(values) for name, values in folded.value_positions.items()},
        rows.take(folded.created),
        rows.take(folded.lacking),
    )


def remove_old_indexes() -> None:
    """Remove the key indexes beyond their limit from the disk; a failure does no harm."""
    try:
        _indexes().shrink()
    except OSError as error:
        log.warning("cannot remove old key indexes: %s", error)


def _indexes() -> KeyIndexes:
    if not _INDEXES:
        _INDEXES.append(KeyIndexes())
    return _INDEXES[0]
