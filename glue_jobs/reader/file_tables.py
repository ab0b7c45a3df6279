"""Derived tables in plain files, as DuckDB reads them: by their entry in Glue's catalog."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlparse

from cdclake.iceberg.dialect import DUCKDB

_TYPES = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "string": "VARCHAR",
    "binary": "BLOB",
}


def file_rows(s3: Any, entry: dict[str, Any]) -> str:
    """Return a SELECT of the rows in the entry's folder; of none if it has no files.

    Partition columns are text. JSON is read with the entry's types: guessed ones would round. It
    has bytes as base64.
    """
    columns, keys = _columns(entry), _partition_keys(entry)
    folder = entry["StorageDescriptor"]["Location"]
    parsed = urlparse(folder)
    found = s3.list_objects_v2(Bucket=parsed.netloc, Prefix=f"{parsed.path.strip('/')}/", MaxKeys=1)
    if not found.get("KeyCount"):
        return no_file_rows(entry)
    options = "hive_partitioning = true, hive_types_autocast = false" if keys else ""
    if entry["Parameters"]["classification"] == "parquet":
        read = ", ".join(filter(None, [DUCKDB.text(f"{folder}/**/*.parquet"), options]))
        return f"SELECT * FROM read_parquet({read})"
    coded = [name for name, kind in columns.items() if kind == "binary"]
    texts = columns | dict.fromkeys(coded, "string")
    types = ", ".join(f"{DUCKDB.name(name)}: '{file_type(kind)}'" for name, kind in texts.items())
    given = [
        DUCKDB.text(f"{folder}/**/*.json.gz"),
        "format = 'newline_delimited'",
        f"columns = {{{types}}}",
        options,
    ]
    decoded = ", ".join(f"from_base64({name}) AS {name}" for name in map(DUCKDB.name, coded))
    shown = f"* REPLACE ({decoded})" if coded else "*"
    return f"SELECT {shown} FROM read_json({', '.join(filter(None, given))})"


def no_file_rows(entry: dict[str, Any]) -> str:
    """Return a SELECT of the entry's columns, without rows."""
    typed = {**_columns(entry), **dict.fromkeys(_partition_keys(entry), "string")}
    listed = ", ".join(
        f"CAST(NULL AS {file_type(kind)}) AS {DUCKDB.name(name)}" for name, kind in typed.items()
    )
    return f"SELECT {listed} WHERE false"


def _columns(entry: dict[str, Any]) -> dict[str, str]:
    return {column["Name"]: column["Type"] for column in entry["StorageDescriptor"]["Columns"]}


def _partition_keys(entry: dict[str, Any]) -> list[str]:
    return [key["Name"] for key in entry.get("PartitionKeys", [])]


def file_type(hive: str) -> str:
    """Return DuckDB's name of a column's type; JSON for nested types.

    >>> file_type("decimal(12,2)"), file_type("array<int>")
    ('DECIMAL(12,2)', 'JSON')
    """
    return hive.upper() if hive.startswith("decimal(") else _TYPES.get(hive, "JSON")
