"""Columns, partitioning and properties of the tables that cdclake writes.

Spark type names throughout. The order of columns is part of the contract with Firehose and CDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cdclake import naming
from cdclake.firehose.stream import ARRIVED_AT
from cdclake.plan import Plan, Table
from cdclake.puts.put_table import PutTable
from cdclake.web_logs.row import COLUMNS, TIME_LOCAL


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """Schema of an Iceberg table: (column, Spark type) pairs, partition transforms, properties."""

    name: str
    columns: tuple[tuple[str, str], ...]
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


# In both `<t>_changes` and `<t>`.
SHARED_COLUMNS = (
    (naming.OP, "string"),
    (naming.POSITION, "string"),
    (naming.TX_ID, "bigint"),
    (naming.COMMITTED_AT, "timestamp"),
    (naming.PARTITION, "int"),
    (naming.OFFSET, "bigint"),
    (naming.UNAVAILABLE, "array<string>"),
)
CHANGES_COLUMNS = (
    (naming.EPOCH, "int"),
    (naming.LSN, "bigint"),
    (naming.PREV_COMMIT_LSN, "bigint"),
    (naming.PHASE, "int"),
    (naming.INGESTED_AT, "timestamp"),
)
STATE_COLUMNS = (
    (naming.DELETED, "boolean"),
    (naming.TOAST_MISSING, "array<string>"),
    (naming.VALUE_POSITIONS, "map<string,string>"),
)
QUARANTINE_COLUMNS = (
    ("topic", "string"),
    ("partition", "int"),
    ("offset", "bigint"),
    ("key", "binary"),
    ("value", "binary"),
    ("headers", "array<struct<key:string,value:binary>>"),
    ("reason", "string"),
    ("table", "string"),
    ("quarantined_at", "timestamp"),
)

KEY_PROPERTY = "cdclake.key"  # of a state: the columns of its key, as it was created
DERIVED_PROPERTY = "cdclake.derived"  # of a table that a refresh has created
DEFINITION_PROPERTY = "cdclake.definition"  # of such a table: what its rows were computed by
_KEPT_METADATA = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "50",
    # Each commit writes a manifest, and the next one reads them all; the default merges at 100.
    "commit.manifest.min-count-to-merge": "10",
}


def changes_schema(table: Table, plan: Plan) -> TableSchema:
    """Return the schema of a table's changelog: append-only, one row per event."""
    columns = tuple((column.name, column.column_type.log) for column in table.columns)
    return TableSchema(
        name=table.changes,
        columns=columns + SHARED_COLUMNS + CHANGES_COLUMNS,
        partition_by=(f"days({naming.INGESTED_AT})", naming.PARTITION),
        properties={
            "format-version": str(plan.format_version),
            "write.distribution-mode": "none",
            # The fence prunes files by it. In a table of more than 100 columns the last ones would
            # have no bounds.
            f"write.metadata.metrics.column.{naming.INGESTED_AT}": "full",
            # The default keeps 16 characters of a string's bounds: no position would be pruned.
            f"write.metadata.metrics.column.{naming.POSITION}": "full",
            **_KEPT_METADATA,
        },
    )


def key_text(table: Table) -> str:
    """Return the value of KEY_PROPERTY."""
    return ",".join(table.key)


def state_schema(table: Table, plan: Plan) -> TableSchema:
    """Return the schema of a state table: the newest row of each key, and tombstones."""
    columns = tuple((column.name, column.column_type.state) for column in table.columns)
    return TableSchema(
        name=table.name,
        columns=columns + SHARED_COLUMNS + STATE_COLUMNS,
        partition_by=table.partition_by,
        properties={
            "format-version": str(plan.format_version),
            KEY_PROPERTY: key_text(table),
            "write.merge.mode": "merge-on-read",
            "write.update.mode": "merge-on-read",
            "write.delete.mode": "merge-on-read",
            # A second writer must fail loudly instead of duplicating rows.
            "write.merge.isolation-level": "serializable",
            f"write.metadata.metrics.column.{naming.POSITION}": "full",
            **_KEPT_METADATA,
        },
    )


def quarantine_schema(plan: Plan) -> TableSchema:
    """Return the schema of the quarantine: refused events with their bytes and the reason."""
    return TableSchema(
        name=naming.QUARANTINE,
        columns=QUARANTINE_COLUMNS,
        properties={
            "format-version": str(plan.format_version),
            # The topics of most tables have the first 16 characters in common.
            "write.metadata.metrics.column.topic": "full",
            **_KEPT_METADATA,
        },
    )


def request_schema(name: str) -> TableSchema:
    """Return the schema of a table of requests."""
    return _appended(name, COLUMNS, (f"days({TIME_LOCAL})",))


def put_schema(table: PutTable) -> TableSchema:
    """Return the schema of a put table: its columns, and the time of arrival."""
    columns = tuple((column.name, column.column_type.state) for column in table.columns)
    return _appended(table.name, (*columns, (ARRIVED_AT, "timestamp")), table.partition_by)


def appended_schemas(plan: Plan) -> tuple[TableSchema, ...]:
    """Return the schemas of the web logs and put tables, which Firehose writes."""
    requests = (request_schema(name) for logs in plan.web_logs for name in logs.tables)
    return (*requests, *(put_schema(table) for put in plan.puts for table in put.targets))


def _appended(
    name: str, columns: tuple[tuple[str, str], ...], partition_by: tuple[str, ...]
) -> TableSchema:
    """Return the schema in the format that Firehose writes."""
    return TableSchema(
        name=name,
        columns=columns,
        partition_by=partition_by,
        properties={"format-version": "2", **_KEPT_METADATA},
    )


def all_schemas(plan: Plan) -> tuple[TableSchema, ...]:
    """Return the schemas that jobs create: the quarantine, then each changelog and state."""
    schemas = [quarantine_schema(plan)]
    for table in plan.tables:
        schemas += [changes_schema(table, plan), state_schema(table, plan)]
    return tuple(schemas)
