"""Parquet data files for an Iceberg table, written in a Spark task without Spark's writer."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_FIELD_ID = b"PARQUET:field_id"
# Of position delete files, with the field ids that Iceberg reserves for them.
DELETE_FILE_PATH, DELETE_POS = "file_path", "pos"
PATH_ID, POS_ID = 2147483546, 2147483545
_SAMPLED_VALUES = 1000
_ZSTD_LEVEL = 3  # Iceberg's default codec and level
_TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "string": pa.string(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}


def arrow_schema(iceberg_schema: str) -> pa.Schema:
    """Return the Arrow schema of Iceberg's schema in JSON, with its field ids at every level."""
    return pa.schema([_field(each) for each in json.loads(iceberg_schema)["fields"]])


def delete_schema() -> pa.Schema:
    """Return the Arrow schema of position delete files."""
    return pa.schema(
        [
            _with_id(DELETE_FILE_PATH, pa.string(), PATH_ID, False),
            _with_id(DELETE_POS, pa.int64(), POS_ID, False),
        ]
    )


def _field(field: dict[str, Any]) -> pa.Field:
    return _with_id(field["name"], _type(field["type"]), field["id"], not field["required"])


def _with_id(name: str, kind: pa.DataType, number: int, nullable: bool) -> pa.Field:
    return pa.field(name, kind, nullable, {_FIELD_ID: str(number).encode()})


def _type(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        if kind.startswith("decimal("):
            precision, scale = kind[len("decimal(") : -1].split(",")
            return pa.decimal128(int(precision), int(scale))
        return _TYPES[kind]
    match kind["type"]:
        case "list":
            optional = not kind["element-required"]
            return pa.list_(
                _with_id("element", _type(kind["element"]), kind["element-id"], optional)
            )
        case "map":
            key = _with_id("key", _type(kind["key"]), kind["key-id"], False)
            optional = not kind["value-required"]
            value = _with_id("value", _type(kind["value"]), kind["value-id"], optional)
            return pa.map_(key, value)
        case _:
            return pa.struct([_field(each) for each in kind["fields"]])


def names_in_file(file: pa.Schema, wanted: pa.Schema) -> dict[str, str]:
    """Return the names that a file has for the wanted columns, found by field id as Iceberg does.

    A column that was renamed since has another name there; columns that it lacks are left out.
    """
    in_file = {_id_of(field): field.name for field in file}
    return {f.name: in_file[_id_of(f)] for f in wanted if _id_of(f) in in_file}


def _id_of(field: pa.Field) -> bytes:
    found: bytes = (field.metadata or {}).get(_FIELD_ID, b"")
    return found


def completed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows with the schema's columns and types, and NULL in columns that they lack."""
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def columns_with_dictionary(rows: pa.Table) -> list[str]:
    """Return the columns that a dictionary makes smaller, as their first values show.

    Otherwise the writer would store each value in the dictionary, and an index for each row. For a
    column of NULLs only it would write an empty dictionary page, as Java's writer never does:
    Trino 406 reads past the end of an empty page of decimals, and its process ends (SIGSEGV).
    """
    return [f.name for f in rows.schema if _repeats(rows.column(f.name))]


def _repeats(values: pa.ChunkedArray) -> bool:
    if pa.types.is_nested(values.type) or values.null_count == len(values):
        return False
    sample = values.slice(0, _SAMPLED_VALUES)
    distinct: int = pc.count_distinct(sample, mode="all").as_py()
    return distinct * 2 <= len(sample)


def encode(rows: pa.Table) -> tuple[pa.Buffer, pq.FileMetaData]:
    """Encode rows that `completed` returned; return the file's bytes and its footer."""
    sink = pa.BufferOutputStream()
    options = {
        "compression": "zstd",
        "compression_level": _ZSTD_LEVEL,
        "store_schema": False,
        "use_dictionary": columns_with_dictionary(rows),
    }
    with pq.ParquetWriter(sink, rows.schema, **options) as writer:
        # One row group: otherwise one could have only NULLs in a column, and an empty dictionary.
        writer.write_table(rows, row_group_size=max(1, rows.num_rows))
    content = sink.getvalue()
    return content, pq.read_metadata(pa.BufferReader(content))
