"""Deleted rows of a state's data files, kept in a Python worker between batches.

A key's newest file may have a dead row: a truncate or the removal of old tombstones deletes rows
without writing others. To delete such a row again would be harmless for readers, but DuckDB 1.5.5
fails if a table has more deleted positions than rows; and a dead row's values must not come back.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.iceberg.parquet_file import DELETE_FILE_PATH, DELETE_POS

MAX_TABLES = 256  # of one worker
Places = npt.NDArray[np.int64]


class DeletedPlaces:
    """Deleted row numbers by data file, from the delete files that were read so far."""

    def __init__(self) -> None:
        self._read: set[str] = set()
        self._places: defaultdict[str, list[Places]] = defaultdict(list)

    def read(self, storage: ObjectStorage, files: Sequence[str]) -> None:
        """Read those of the table's delete files that are new; start again if others are gone."""
        if not self._read <= set(files):
            self._read.clear()
            self._places.clear()
        for file in files:
            if file not in self._read:
                self._take(storage.read(file))
                self._read.add(file)

    def are_deleted(self, path: str, rows: Places) -> npt.NDArray[np.bool_]:
        """Return which of these rows of a data file are deleted."""
        parts = self._places.get(path)
        if not parts:
            return np.zeros(len(rows), bool)
        if len(parts) > 1:
            parts[:] = [np.unique(np.concatenate(parts))]
        return np.isin(rows, parts[0])

    def _take(self, content: pa.Buffer) -> None:
        table = pq.read_table(
            pa.BufferReader(content), columns=[DELETE_FILE_PATH, DELETE_POS], use_threads=False
        )
        paths = table.column(DELETE_FILE_PATH).combine_chunks().dictionary_encode()
        rows = table.column(DELETE_POS).combine_chunks().to_numpy()
        codes = paths.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(paths.dictionary)))
        for path, part in zip(
            paths.dictionary.to_pylist(), np.split(rows[order], ends[:-1]), strict=True
        ):
            self._places[path].append(part)


_OF_TABLES: OrderedDict[str, DeletedPlaces] = OrderedDict()


def deleted_places(folder: str, storage: ObjectStorage, files: Sequence[str]) -> DeletedPlaces:
    """Return the deleted rows of the table with this data folder, by its present delete files."""
    known = _OF_TABLES.setdefault(folder, DeletedPlaces())
    _OF_TABLES.move_to_end(folder)
    if len(_OF_TABLES) > MAX_TABLES:
        _OF_TABLES.popitem(last=False)
    known.read(storage, files)
    return known
