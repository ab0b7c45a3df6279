"""Search of one file by its format, which its first bytes tell: never by its name.

The bytes themselves are searched too, whatever the format: a value that was left uncompressed, or
between two structures, is found there.
"""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

import fastavro
import pyarrow as pa

from cdclake.errors import ComponentFailed
from cdclake.jobs.erasure import parquet_search
from cdclake.jobs.erasure.parquet_search import Part, search_parquet
from cdclake.jobs.erasure.sought_values import SoughtValues

_PUFFIN, _PUFFIN_END = b"PFA1", 12  # its footer ends with size, flags and magic bytes
_BOUNDS_BY_ID = ("lower_bounds", "upper_bounds")  # of manifests: lists of field id and bytes
_SUMMARY_BOUNDS = ("lower_bound", "upper_bound")  # of manifest lists
_PARTITION, _FORMAT_VERSION = "partition", "format-version"
_RAW = "bytes"
_ROLLBACK_JOURNAL = b"\x01\x01"  # of a database's header: one in memory has no write-ahead log
HUDIS_OWN = "/.hoodie"  # its timeline, and the marks of its partitions' folders
SQLITE = b"SQLite format 3\x00"


def search_content(name: str, content: bytes, sought: SoughtValues) -> Iterator[Part]:
    """Yield the parts of a file with sought values, and the file's name if it has some.

    Raise ComponentFailed if the file cannot be read: what is not read is not proved.
    """
    if found := sought.in_path(name):
        yield "name", found
    if HUDIS_OWN in name:  # its timeline names the folders of partitions
        sought = sought.of_paths()
    if found := sought.in_bytes(content):
        yield _RAW, found
    for magic, search in _FORMATS.items():
        if content.startswith(magic):
            try:
                yield from search(content, sought)
            except Exception as error:  # each parser has other ones for damaged files
                raise _unreadable(name, error) from error
            return
    yield from _search_json(content, sought)


def _unreadable(name: str, error: Exception) -> ComponentFailed:
    return ComponentFailed(
        f"{name} cannot be searched: {type(error).__name__}: {error}",
        "the file is damaged or of an unknown version: compare it with its table's metadata, and"
        " delete it if no table refers to it",
    )


def _search_json(content: bytes, sought: SoughtValues) -> Iterator[Part]:
    """Search JSON, or lines of JSON; other lines have been searched as bytes.

    Iceberg's metadata has ids and sizes under names that columns may have: there only texts count.
    """
    try:
        texts = [json.loads(content)]
    except ValueError:
        texts = [text for line in content.splitlines() if (text := _parsed(line)) is not None]
    for parsed in texts:
        is_metadata = isinstance(parsed, Mapping) and _FORMAT_VERSION in parsed
        if found := (sought.elsewhere() if is_metadata else sought).in_value("", parsed):
            yield "JSON", found


def _parsed(line: bytes) -> Any:
    if not line.lstrip().startswith((b"{", b"[")):
        return None
    try:
        return json.loads(line)
    except ValueError:
        return None


def _search_avro(content: bytes, sought: SoughtValues) -> Iterator[Part]:
    """Search records of Avro; those of Iceberg's manifests have bounds by the ids of fields."""
    reader = fastavro.reader(io.BytesIO(content))
    names = _names_by_id(reader.metadata)
    if found := sought.in_value("", dict(reader.metadata)):
        yield "Avro metadata", found
    for record in reader:
        if found := _in_record(record, sought, is_manifest=bool(names)):
            yield "Avro record", found
        if found := _in_bounds(record, names, sought):
            yield "bound of a manifest", found


def _in_record(value: Any, sought: SoughtValues, *, is_manifest: bool) -> set[str]:
    """Search a record; of a manifest's one, numbers count in the partition only."""
    if not is_manifest:
        return sought.in_value("", value)
    found = sought.elsewhere().in_value("", value)
    data_file = value.get("data_file", value)
    return found | sought.in_value("", data_file.get(_PARTITION))


def _names_by_id(metadata: Mapping[str, Any]) -> dict[int, str]:
    """Return the table's columns by field id, from the schema that a manifest has."""
    schema = metadata.get("schema")
    fields = json.loads(schema).get("fields", []) if schema else []
    return {field["id"]: field["name"] for field in fields}


def _in_bounds(value: Any, names: Mapping[int, str], sought: SoughtValues) -> set[str]:
    """Search the bounds in a record of a manifest or a manifest list."""
    found: set[str] = set()
    if isinstance(value, list):
        for each in value:
            found |= _in_bounds(each, names, sought)
    if not isinstance(value, Mapping):
        return found
    for key, inner in value.items():
        if key in _BOUNDS_BY_ID and inner:
            for bound in inner:
                found |= sought.in_bound(names.get(bound["key"], ""), bound["value"])
        elif key in _SUMMARY_BOUNDS and inner is not None:
            found |= sought.in_bound("", inner)
        else:
            found |= _in_bounds(inner, names, sought)
    return found


def _search_puffin(content: bytes, sought: SoughtValues) -> Iterator[Part]:
    """Search the blobs of a Puffin file and its footer."""
    end = len(content) - _PUFFIN_END
    if not content.endswith(_PUFFIN):
        raise ValueError("the file does not end as Puffin does")
    size = int.from_bytes(content[end : end + 4], "little")
    payload = content[end - size : end]
    if content[end + 4] & 1:
        payload = _stream(payload, "lz4")
    footer = json.loads(payload)
    if found := sought.in_value("", footer):
        yield "Puffin footer", found
    for blob in footer["blobs"]:
        stored = content[blob["offset"] : blob["offset"] + blob["length"]]
        codec = blob.get("compression-codec")
        plain = stored if codec is None else _stream(stored, codec)
        if found := sought.in_bytes(plain):
            yield f"Puffin blob {blob['type']}", found


def _stream(content: bytes, codec: str) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(content), codec) as stream:
        return bytes(stream.read())


def _search_gzip(content: bytes, sought: SoughtValues) -> Iterator[Part]:
    yield from search_content("", gzip.decompress(content), sought)


def _search_zstd(content: bytes, sought: SoughtValues) -> Iterator[Part]:
    yield from search_content("", _stream(content, "zstd"), sought)


def _search_sqlite(content: bytes, sought: SoughtValues) -> Iterator[Part]:
    """Search every row: a long value lies in several pages, which the bytes do not join."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(content[:18] + _ROLLBACK_JOURNAL + content[20:])
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            quoted = table.replace('"', '""')
            rows = database.execute(f'SELECT * FROM "{quoted}"')
            columns = [each[0] for each in rows.description]
            for row in rows:
                if found := sought.in_value("", dict(zip(columns, row, strict=True))):
                    yield f"row of {table}", found


_FORMATS: Mapping[bytes, Callable[[bytes, SoughtValues], Iterator[Part]]] = {
    parquet_search.MAGIC: search_parquet,
    b"Obj\x01": _search_avro,
    _PUFFIN: _search_puffin,
    b"\x1f\x8b": _search_gzip,
    b"\x28\xb5\x2f\xfd": _search_zstd,
    SQLITE: _search_sqlite,
}
