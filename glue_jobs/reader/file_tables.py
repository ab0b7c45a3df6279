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

    Partition columns are text. JSON is read with the entry's types: guessed ones would round.
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
    decoded = {name: value for name, kind in columns.items() if (value := _decoded(name, kind))}
    texts = columns | dict.fromkeys(decoded, "string")
    types = ", ".join(f"{DUCKDB.name(name)}: '{file_type(kind)}'" for name, kind in texts.items())
    given = [
        DUCKDB.text(f"{folder}/**/*.json.gz"),
        "format = 'newline_delimited'",
        f"columns = {{{types}}}",
        options,
    ]
    replaced = ", ".join(f"{value} AS {DUCKDB.name(name)}" for name, value in decoded.items())
    shown = f"* REPLACE ({replaced})" if decoded else "*"
    return f"SELECT {shown} FROM read_json({', '.join(filter(None, given))})"


def _decoded(name: str, kind: str) -> str | None:
    """Return the value of a column that JSON has as another text; None if the reader decodes it.

    Spark writes bytes as base64, and a year after 9999 with a sign that DuckDB refuses.
    """
    quoted = DUCKDB.name(name)
    if kind == "binary":
        return f"from_base64({quoted})"
    if kind in ("date", "timestamp"):
        return f"CAST(ltrim({quoted}, '+') AS {file_type(kind)})"
    return None


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
