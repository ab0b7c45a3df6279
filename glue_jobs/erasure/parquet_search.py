"""Search of a Parquet file: its values, pages, dictionaries, statistics and column indexes.

Decoded values are found whatever their encoding. The decompressed pages hold more than the values:
entries of dictionaries that no row uses, and what follows the last value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdclake.jobs.erasure.sought_values import SoughtValues
from cdclake.jobs.erasure.thrift_compact import ThriftReader

MAGIC = b"PAR1"
Part = tuple[str, set[str]]  # part of a file, columns of the values found in it

# Field ids of parquet-format's Thrift structs.
_ROW_GROUPS, _COLUMNS = 4, 1
_META, _INDEX_OFFSET, _INDEX_LENGTH = 3, 6, 7
_TYPE, _PATH, _CODEC, _COMPRESSED_SIZE, _DATA_AT, _DICTIONARY_AT, _STATISTICS = (
    1,
    3,
    4,
    7,
    9,
    11,
    12,
)
_PAGE_PLAIN_SIZE, _PAGE_SIZE, _PAGE_V1, _PAGE_V2 = 2, 3, 5, 8
_V1_STATISTICS, _V2_STATISTICS, _V2_DEFINITIONS, _V2_REPETITIONS, _V2_COMPRESSED = 5, 8, 5, 6, 7
_BOUNDS = (1, 2, 5, 6)  # of statistics: maximum and minimum, in the old and the new order
_INDEX_MINIMA, _INDEX_MAXIMA = 2, 3
_DICTIONARY = "dictionary"
_FORMATS_OF_NUMBERS = {1: "i", 2: "q"}  # Thrift type of a column -> format of its numbers
_CODECS = (None, "snappy", "gzip", None, "brotli", None, "zstd", "lz4_raw")
_FOOTER_END = 8  # length of the footer, and magic bytes


def search_parquet(content: bytes, sought: SoughtValues) -> Iterator[Part]:
    """Yield the parts of the file with sought values; raise ValueError if it is no Parquet."""
    yield from _values(content, sought)
    for group in _footer(content).get(_ROW_GROUPS, []):
        for chunk in group[_COLUMNS]:
            yield from _chunk(content, chunk, sought)


def _footer(content: bytes) -> dict[int, Any]:
    if not content.endswith(MAGIC):
        raise ValueError("the file does not end as Parquet does")
    length = int.from_bytes(content[-_FOOTER_END:-4], "little")
    return ThriftReader(content, len(content) - _FOOTER_END - length).struct()


def _values(content: bytes, sought: SoughtValues) -> Iterator[Part]:
    """Yield columns whose decoded values have sought ones."""
    file = pq.ParquetFile(pa.BufferReader(content))
    for batch in file.iter_batches():
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if found := _in_column(name, column, sought):
                yield f"values of column {name}", found


def _in_column(name: str, column: pa.Array, sought: SoughtValues) -> set[str]:
    is_plain = pa.types.is_primitive(column.type) or pa.types.is_decimal(column.type)
    if is_plain and not pa.types.is_temporal(column.type) and not sought.is_whole(name):
        return set()  # a number counts only in its column
    is_nested = pa.types.is_nested(column.type)
    distinct = column if is_nested else pc.unique(column)
    return set().union(*(sought.in_value(name, value) for value in distinct.to_pylist()))


def _chunk(content: bytes, chunk: dict[int, Any], sought: SoughtValues) -> Iterator[Part]:
    """Yield the parts of one column in one row group."""
    meta = chunk[_META]
    name = meta[_PATH][0].decode()
    if found := _in_statistics(name, meta.get(_STATISTICS, {}), sought):
        yield f"statistics of column {name}", found
    for part, bounds, page in _pages(content, meta):
        found = sought.in_bytes(page) | _in_statistics(name, bounds, sought)
        if part == _DICTIONARY and sought.is_whole(name):
            found |= sought.in_value(name, _numbers(page, meta[_TYPE]))
        if found:
            yield f"{part} of column {name}", found
    if _INDEX_OFFSET in chunk:
        index = ThriftReader(content, chunk[_INDEX_OFFSET]).struct()
        bounds_of_pages = [*index[_INDEX_MINIMA], *index[_INDEX_MAXIMA]]
        found = set().union(*(sought.in_bound(name, bound) for bound in bounds_of_pages))
        if found:
            yield f"column index of column {name}", found


def _in_statistics(name: str, statistics: dict[int, Any], sought: SoughtValues) -> set[str]:
    bounds = [statistics[each] for each in _BOUNDS if each in statistics]
    return set().union(*(sought.in_bound(name, bound) for bound in bounds))


def _pages(content: bytes, meta: dict[int, Any]) -> Iterator[tuple[str, dict[int, Any], bytes]]:
    """Yield each page with its statistics, decompressed."""
    starts = [meta[each] for each in (_DICTIONARY_AT, _DATA_AT) if meta.get(each)]
    if not starts and not meta[_COMPRESSED_SIZE]:
        return  # a column without pages, of a file without rows
    reader = ThriftReader(content, min(starts))
    end = reader.at + meta[_COMPRESSED_SIZE]
    while reader.at < end:
        header = reader.struct()
        stored = content[reader.at : reader.at + header[_PAGE_SIZE]]
        reader.at += header[_PAGE_SIZE]
        first, second = header.get(_PAGE_V1), header.get(_PAGE_V2)
        part = "page" if first is not None or second is not None else _DICTIONARY
        statistics = (first or {}).get(_V1_STATISTICS) or (second or {}).get(_V2_STATISTICS) or {}
        yield part, statistics, _plain(stored, header, _CODECS[meta[_CODEC]])


def _numbers(dictionary: bytes, kind: int) -> list[int]:
    """Return the whole numbers of a dictionary, used or not."""
    form = _FORMATS_OF_NUMBERS.get(kind)
    if form is None:
        return []
    size = struct.calcsize(f"<{form}")
    return [number for (number,) in struct.iter_unpack(f"<{form}", _cut(dictionary, size))]


def _cut(content: bytes, size: int) -> bytes:
    return content[: len(content) // size * size]


def _plain(stored: bytes, header: dict[int, Any], codec: str | None) -> bytes:
    """Return a page decompressed; the levels of a page of version 2 never are compressed."""
    second = header.get(_PAGE_V2)
    levels = 0
    if second is not None:
        levels = second.get(_V2_DEFINITIONS, 0) + second.get(_V2_REPETITIONS, 0)
        codec = codec if second.get(_V2_COMPRESSED, True) else None
    size = header[_PAGE_PLAIN_SIZE] - levels
    if codec is None or size == 0:
        return stored
    plain = pa.Codec(codec).decompress(stored[levels:], decompressed_size=size, asbytes=True)
    return stored[:levels] + bytes(plain)
