"""Synthetic changelog rows, as Firehose's function returns them, to test routing queries on."""

from __future__ import annotations

import json
from typing import Any

from cdclake import naming
from cdclake.debezium.changelog_rows import LogRows, Place
from cdclake.debezium.field_values import Digits
from cdclake.debezium.types import ColumnType, Conversion
from cdclake.plan import Plan, Table

_MOMENT = 1_767_225_600_000_000
_BY_LOG: dict[str, Any] = {
    "boolean": True,
    "int": 1,
    "bigint": 1,
    "float": Digits("1.5"),
    "double": Digits("1.5"),
    "string": "text",
}
_BY_CONVERSION = {
    Conversion.DECIMAL: "0",
    Conversion.TIMESTAMPTZ: "2026-01-01T00:00:00Z",
    Conversion.BINARY: "AA==",
}


def sample_rows(table: Table, plan: Plan) -> dict[str, bytes]:
    """Return one row per operation, with every value that the operation can have."""
    rows = LogRows(table, plan)
    made = {op: rows.row(_event(table, op), Place(0, 1), _MOMENT) for op in "rcudt"}
    return {op: json.dumps(row, ensure_ascii=False).encode() for op, row in made.items()}


def _event(table: Table, op: str) -> dict[str, Any]:
    values = {column.source: _value(column.column_type) for column in table.columns}
    return {
        "before": values if op == "d" else None,
        "after": values if op in "rcu" else None,
        "op": op,
        naming.EPOCH: "1",
        "source": {
            "schema": table.schema, "table": table.table, "txId": 1, "ts_us": _MOMENT,
            "lsn": 2, "sequence": '["1","2"]',
        },
    }  # fmt: skip


def _value(kind: ColumnType) -> Any:
    if kind.array:
        return []
    return _BY_CONVERSION.get(kind.conversion, _BY_LOG[kind.log])
