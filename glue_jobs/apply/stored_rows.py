"""Rows of a state's data files, read by their places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from cdclake.jobs.iceberg.decoded_size import decoded_bytes
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.iceberg.parquet_file import names_in_file

# Of rows that are read together. A column of texts has at most 2 GiB in Arrow.
MAX_BLOCK_ROWS, BLOCK_BYTES = 65_536, 64 << 20
# Pages with more than that are not read to find out what their rows need once decoded.
_MAX_MEASURED_BYTES = 4 * BLOCK_BYTES
Places = npt.NDArray[np.int64]  # row numbers in a data file


def read_key_columns(
    storage: ObjectStorage, path: str, key: Sequence[str], schema: pa.Schema
) -> list[pa.Array]:
    """Read the key columns of a data file; `schema` is the table's, with field ids."""
    with storage.open(path) as source:
        file = pq.ParquetFile(source, pre_buffer=True)
        names = names_in_file(file.schema_arrow, schema)
        rows = file.read(columns=[names[name] for name in key], use_threads=False)
    arrays = (rows.column(names[name]).combine_chunks() for name in key)
    types = (schema.field(name).type for name in key)  # the column may have become wider
    return [array.cast(kind) for array, kind in zip(arrays, types, strict=True)]


def read_places(
    storage: ObjectStorage, path: str, places: Places, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Yield the rows at these ascending places, one block after the other.

    Skips row groups without a place. Columns that the file lacks are left out.
    """
    with storage.open(path) as source:
        file = pq.ParquetFile(source, pre_buffer=True)
        names = names_in_file(file.schema_arrow, schema)
        for rows in _parts(source, file, places, list(names.values())):
            yield pa.table({name: rows.column(in_file) for name, in_file in names.items()})


def _parts(
    source: pa.NativeFile, file: pq.ParquetFile, places: Places, columns: Sequence[str]
) -> Iterator[pa.Table]:
    start = 0
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        end = start + rows
        if _between(places, start, end).size:
            at = start
            needed = decoded_bytes(source, file.metadata, [group], enough=_MAX_MEASURED_BYTES)
            size = max(1, min(BLOCK_BYTES * rows // max(needed, 1), MAX_BLOCK_ROWS))
            blocks = file.iter_batches(
                size, row_groups=[group], columns=list(columns), use_threads=False
            )
            for block in blocks:
                mine = _between(places, at, at + block.num_rows)
                if mine.size:
                    yield pa.Table.from_batches([block]).take(pa.array(mine - at))
                at += block.num_rows
        start = end


def _between(places: Places, start: int, end: int) -> Places:
    low, high = np.searchsorted(places, [start, end])
    return places[low:high]
