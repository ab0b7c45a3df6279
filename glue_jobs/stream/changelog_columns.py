"""Columns of decoded events: those of the changelog, and the findings of the decoder."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from cdclake import naming
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.schemas import CHANGES_COLUMNS, SHARED_COLUMNS
from cdclake.plan import Table

# Additional columns start with `cdc_`, which no column of a source may.
REFUSAL = "cdc__refusal"  # why the event is refused; NULL if it is accepted
ABSENT = "cdc__absent"  # declared columns without a field in the event; NULL if there are none
MISFITS = "cdc__misfits"  # declared columns whose field has another type; NULL if none
FINDINGS = (REFUSAL, ABSENT, MISFITS)

# The changelog's columns without those of the row and the time of ingestion.
FACT_COLUMNS = {
    name: kind for name, kind in (*SHARED_COLUMNS, *CHANGES_COLUMNS) if name != naming.INGESTED_AT
}
_LISTS = "array<string>"
_TYPES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
    _LISTS: pa.list_(pa.string()),
}


def arrow_type(kind: str) -> pa.DataType:
    """Return the Arrow type of one of the changelog's Spark types."""
    return _TYPES[kind]


def decoded_columns(table: Table) -> dict[str, str]:
    """Return names and Spark types of the columns of the table's decoded events, in order."""
    columns = {column.name: column.column_type.log for column in table.columns}
    return columns | FACT_COLUMNS | {REFUSAL: "string", ABSENT: _LISTS, MISFITS: _LISTS}


def event_columns(table: Table) -> list[str]:
    """Return the changelog's columns without the time of ingestion, quoted and in order."""
    names = (*(column.name for column in table.columns), *FACT_COLUMNS)
    return [SPARK.name(name) for name in names]


def without_refused(rows: pa.Table) -> pa.Table:
    """Return the accepted ones of decoded events; they are only copied if some are refused."""
    refusals = rows[REFUSAL]
    return rows if refusals.null_count == rows.num_rows else rows.filter(pc.is_null(refusals))


def decoded_schema(table: Table) -> pa.Schema:
    """Return the same columns as an Arrow schema."""
    return pa.schema([(name, _TYPES[kind]) for name, kind in decoded_columns(table).items()])
