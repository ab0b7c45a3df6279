"""Routing of rows to tables: by the function's metadata, by a jq query (libjq), or to one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdclake.config.problems import Refused
from cdclake.config.routing import Destination, Nowhere, destinations
from cdclake.firehose.stream import DeliveryStream
from cdclake.local.firehose.records import Failure, Made

_NOWHERE = "Iceberg.RoutingFailed"  # not from AWS, which documents no code


def routed(
    stream: DeliveryStream, database: str, rows: Sequence[Made]
) -> tuple[dict[str, list[Made]], list[Failure]]:
    """Return the rows by table, and failures for those without one."""
    by_table: dict[str, list[Made]] = {}
    failures: list[Failure] = []
    for row, found in zip(rows, _destinations(stream, database, rows), strict=True):
        wrong = str(found) if isinstance(found, Nowhere) else _wrong(found, database)
        if isinstance(found, Nowhere) or wrong:
            failures.append(
                Failure(
                    record=row.record, code=_NOWHERE, message=wrong or "", attempts=1, raw=row.data
                )
            )
        else:
            by_table.setdefault(found.table, []).append(row)
    return by_table, failures


def _destinations(
    stream: DeliveryStream, database: str, rows: Sequence[Made]
) -> Sequence[Destination | Nowhere]:
    if stream.route is None:
        return [_named(stream, database, row.metadata) for row in rows]
    try:
        return destinations(stream.route, [row.data for row in rows])
    except Refused as refused:
        return [Nowhere(refused.message)] * len(rows)


def _named(
    stream: DeliveryStream, database: str, metadata: Mapping[str, Any]
) -> Destination | Nowhere:
    found: Mapping[str, Any] = metadata.get("otfMetadata") or {}
    if not found and stream.table is not None:
        return Destination(database, stream.table)
    named, table = found.get("destinationDatabaseName"), found.get("destinationTableName")
    if not isinstance(named, str) or not isinstance(table, str):
        return Nowhere("the function returned no table")
    return Destination(named, table, found.get("operation") or "insert")


def _wrong(found: Destination, database: str) -> str | None:
    if found.database != database:
        return f"unknown database {found.database!r}"
    if found.operation != "insert":
        return f"the operation {found.operation!r} needs unique keys, which a changelog has not"
    return None
