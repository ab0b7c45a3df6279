"""Small lakes as values: Athena's texts read them in place of tables."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from cdclake import naming
from cdclake.iceberg.dialect import TRINO
from cdclake.iceberg.schemas import TableSchema, changes_schema, state_schema
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.iceberg.commit_metadata import state_stamp_json
from cdclake.plan import Plan, Table

_TYPES = {
    "string": "varchar",
    "int": "integer",
    "float": "real",
    "binary": "varbinary",
    "timestamp": "timestamp(6) with time zone",
    "timestamp_ntz": "timestamp(6)",
}
SNAPSHOTS = {
    "snapshot_id": "bigint",
    "committed_at": "timestamp(3) with time zone",
    "operation": "varchar",
    "summary": "map(varchar, varchar)",
}
HISTORY = {"snapshot_id": "bigint", "is_current_ancestor": "boolean"}


def trino_type(spark: str) -> str:
    """Trino's name of a Spark type that our schemas use."""
    if spark.startswith("array<"):
        return f"array({trino_type(spark[6:-1])})"
    if spark.startswith("map<"):
        return f"map({', '.join(trino_type(part) for part in spark[4:-1].split(','))})"
    return _TYPES.get(spark, spark)


def lake_values(
    table: Table,
    plan: Plan,
    log: Iterable[Mapping[str, Any]] = (),
    state: Iterable[Mapping[str, Any]] = (),
    commits: Iterable[tuple[AppliedThrough | None, datetime, bool]] = (),
) -> dict[str, str]:
    """Relations by name: log, state, and the state's commits, each a stamp, time and ancestry."""
    listed = [
        {
            "snapshot_id": number,
            "committed_at": at,
            "operation": "overwrite",
            "summary": {naming.STAMP_PROPERTY: state_stamp_json(stamp)} if stamp else {"a": "b"},
            "is_current_ancestor": is_ancestor,
        }
        for number, (stamp, at, is_ancestor) in enumerate(commits)
    ]
    return {
        table.changes: _relation(changes_schema(table, plan), log),
        table.name: _relation(state_schema(table, plan), state),
        f"{table.name}$snapshots": relation(SNAPSHOTS, listed),
        f"{table.name}$history": relation(HISTORY, listed),
    }


def over(query: str, relations: Mapping[str, str], database: str) -> str:
    """The query, with the relations in place of the database's tables."""
    text = query.replace(f"{TRINO.name(database)}.", "")
    made = ",\n".join(f"{TRINO.name(name)} AS ({select})" for name, select in relations.items())
    return f"WITH {made}\nSELECT * FROM ({text})"


def relation(types: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A SELECT of these rows; what a row lacks is NULL.

    One text in JSON: a planner looks at each of many values once for every mention.
    """
    listed = json.dumps([[_sent(row.get(name)) for name in types] for row in rows])
    names = {name: TRINO.name(name) for name in types}
    fields = ", ".join(f"{names[name]} {_kind_in_json(kind)}" for name, kind in types.items())
    columns = ", ".join(
        f"{_of_json(names[name], kind)} AS {names[name]}" for name, kind in types.items()
    )
    return (
        f"SELECT {columns} FROM UNNEST(CAST(json_parse({TRINO.text(listed)}) AS "
        f"array(row({fields})))) AS v ({', '.join(names.values())})"
    )


def _relation(schema: TableSchema, rows: Iterable[Mapping[str, Any]]) -> str:
    return relation({name: trino_type(kind) for name, kind in schema.columns}, rows)


def _kind_in_json(kind: str) -> str:
    if kind.startswith("timestamp"):
        return "bigint"  # microseconds
    return "varchar" if kind in ("varbinary", "date") else kind


def _of_json(name: str, kind: str) -> str:
    if kind == "varbinary":
        return f"from_base64({name})"
    if kind.startswith("timestamp"):
        name = f"from_unixtime_nanos(CAST({name} AS decimal(38,0)) * 1000)"
    return f"CAST({name} AS {kind})"


def _sent(value: object) -> object:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else str(value)  # JSON has no NaN
    if isinstance(value, datetime):
        return round(value.timestamp() * 1_000_000)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
