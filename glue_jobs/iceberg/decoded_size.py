"""Memory that a Parquet file's rows need in Arrow, found without decoding them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_NUMBER_BYTES = 8


def decoded_bytes(
    source: pa.NativeFile, footer: pq.FileMetaData, groups: Sequence[int], *, enough: int
) -> int:
    """Return the bytes of the values of row groups.

    Up to `enough` it may be an upper bound. It is a lower bound if the pages alone need more, which
    are not read then: this takes memory for at most `enough` bytes of texts.

    A page has a repeated text once, in its dictionary, but an Arrow array has it for each row. So
    neither the size of a file nor that of its pages limits the memory that the rows need.
    """
    plain, stored, bound = 0, 0, 0
    with_dictionary = set()
    for chunk, is_flat in _chunks(footer, groups):
        is_text = is_flat and chunk.physical_type == "BYTE_ARRAY"
        if is_text and any("DICTIONARY" in encoding for encoding in chunk.encodings):
            with_dictionary.add(chunk.path_in_schema)
            stored += chunk.total_uncompressed_size
            bound += chunk.num_values * chunk.total_uncompressed_size
        else:
            plain += max(chunk.total_uncompressed_size, chunk.num_values * _NUMBER_BYTES)
    if plain + bound <= enough:
        return plain + bound
    # A full dictionary is followed by pages of plain values, which a reader adds to it.
    if plain + stored > enough:
        return plain + stored
    return plain + _text_bytes(source, footer, groups, sorted(with_dictionary))


def _chunks(
    footer: pq.FileMetaData, groups: Sequence[int]
) -> Iterator[tuple[pq.ColumnChunkMetaData, bool]]:
    """Yield the groups' column chunks, and whether their values are in no list or map."""
    for group in groups:
        for number in range(footer.num_columns):
            is_flat = footer.schema.column(number).max_repetition_level == 0
            yield footer.row_group(group).column(number), is_flat


def _text_bytes(
    source: pa.NativeFile, footer: pq.FileMetaData, groups: Sequence[int], columns: Sequence[str]
) -> int:
    """Return the bytes of all texts of these columns, which stay in their dictionaries."""
    file = pq.ParquetFile(source, metadata=footer, read_dictionary=columns, pre_buffer=True)
    size = 0
    for block in file.iter_batches(row_groups=groups, columns=columns, use_threads=False):
        for values in block.columns:
            lengths = pc.binary_length(values.dictionary).cast(pa.int64())
            size += pc.sum(lengths.take(values.indices)).as_py() or 0
    return size
