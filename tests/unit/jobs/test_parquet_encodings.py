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
        (pa.array([None, "note"] * (_ROWS // 2)), True),
        (pa.nulls(_ROWS, pa.string()), False),
        (pa.nulls(_ROWS, pa.decimal128(12, 2)), False),
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
    column = footer.row_group(0).column(0)
    assert ("RLE_DICTIONARY" in column.encodings) == has_dictionary
    assert column.has_dictionary_page == has_dictionary
    assert pq.read_table(pa.BufferReader(content)).equals(rows)


def test_no_group_of_rows_has_an_empty_dictionary() -> None:
    """The rows exceed the 2^20 of a group by default; only NULLs are beyond."""
    rows = pa.table({"values": pa.concat_arrays([pa.array([1] * (1 << 20)), pa.nulls(9, "int64")])})
    _, footer = encode(rows)
    dictionary = footer.row_group(0).column(0)
    assert footer.num_row_groups == 1
    assert dictionary.has_dictionary_page


def test_no_rows() -> None:
    rows = pa.table({"values": pa.nulls(0, pa.string())})
    content, footer = encode(rows)
    assert footer.num_rows == 0
    assert pq.read_table(pa.BufferReader(content)).equals(rows)
