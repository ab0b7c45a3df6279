"""Memory that a Parquet file's rows need in Arrow, found without decoding them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_NUMBER_BYTES = 8


def decoded_bytes(content: pa.Buffer, *, enough: int) -> int:
    """Return the bytes of the values of a file, or an upper bound that is at most `enough`.

    A page has a repeated text once, in its dictionary, but an Arrow array has it for each row. So
    neither the size of a file nor that of its pages limits the memory that the rows need.
    """
    footer = pq.read_metadata(pa.BufferReader(content))
    plain, bound = 0, 0
    with_dictionary = set()
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            chunk, column = footer.row_group(group).column(number), footer.schema.column(number)
            is_flat_text = column.max_repetition_level == 0 and chunk.physical_type == "BYTE_ARRAY"
            if is_flat_text and any("DICTIONARY" in encoding for encoding in chunk.encodings):
                with_dictionary.add(chunk.path_in_schema)
                bound += chunk.num_values * chunk.total_uncompressed_size
            else:
                plain += max(chunk.total_uncompressed_size, chunk.num_values * _NUMBER_BYTES)
    if plain + bound <= enough:
        return plain + bound
    return plain + _dictionary_bytes(content, sorted(with_dictionary))


def _dictionary_bytes(content: pa.Buffer, columns: Sequence[str]) -> int:
    """Return the bytes of all values of these columns, which stay in their dictionaries."""
    file = pq.ParquetFile(pa.BufferReader(content), read_dictionary=columns)
    size = 0
    for block in file.iter_batches(columns=columns, use_threads=False):
        for values in block.columns:
            lengths = pc.binary_length(values.dictionary).cast(pa.int64())
            size += pc.sum(lengths.take(values.indices)).as_py() or 0
    return size
