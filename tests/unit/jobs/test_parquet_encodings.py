"""Encodings of the columns in a data file."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdclake.jobs.iceberg.parquet_file import encode

_ROWS = 5000


@pytest.mark.parametrize(
    ("values", "has_dictionary"),
    [
        (pa.array([f"status {n % 7}" for n in range(_ROWS)]), True),
        (pa.array([n // 2 for n in range(_ROWS)]), True),
        (pa.nulls(_ROWS, pa.string()), True),
        (pa.array([f"note {n}" for n in range(_ROWS)]), False),
        (pa.array(range(_ROWS)), False),
        (pa.array([["a", "b"]] * _ROWS), False),
    ],
)
def test_a_column_has_a_dictionary_if_its_values_repeat(
    values: pa.Array, has_dictionary: bool
) -> None:
    rows = pa.table({"values": values})
    content, footer = encode(rows)
    encodings = footer.row_group(0).column(0).encodings
    assert ("RLE_DICTIONARY" in encodings) == has_dictionary
    assert pq.read_table(pa.BufferReader(content)).equals(rows)


def test_no_rows() -> None:
    rows = pa.table({"values": pa.nulls(0, pa.string())})
    content, footer = encode(rows)
    assert footer.num_rows == 0
    assert pq.read_table(pa.BufferReader(content)).equals(rows)
