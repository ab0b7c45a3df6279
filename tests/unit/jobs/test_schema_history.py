"""Changes of a schema between snapshots, from a table's metadata."""

from __future__ import annotations

from typing import Any

from cdclake.jobs.reader.catalog import CatalogTable, parse_table
from cdclake.jobs.reader.schema_history import schema_history


def _table(*schemas: list[tuple[int, str, Any]], current: int) -> CatalogTable:
    """Return a table with a snapshot for each schema; `current` may be newer than all."""
    listed = [
        {"schema-id": number, "fields": [dict(zip(("id", "name", "type"), f, strict=True))
                                         for f in fields]}
        for number, fields in enumerate(schemas)
    ]  # fmt: skip
    snapshots = [
        {"snapshot-id": number + 1, "timestamp-ms": number + 1, "schema-id": number}
        for number in range(current + 1)
    ]
    return parse_table("orders", "s3://b/1.json", {
        "schemas": listed, "current-schema-id": len(schemas) - 1, "snapshots": snapshots,
    })  # fmt: skip


def test_each_change_names_its_first_snapshot() -> None:
    table = _table(
        [(1, "id", "long"), (2, "total", "int"), (3, "note", "string")],
        [(1, "id", "long"), (2, "amount", "long")],
        [(1, "id", "long"), (2, "amount", "long"), (4, "tags", {"type": "list", "element-id": 5})],
        current=1,
    )
    found = [(c.snapshot and c.snapshot.id, c.column, c.change) for c in schema_history(table)]
    assert found == [
        (2, "amount", "renamed from total"),
        (2, "amount", "changed from int to long"),
        (2, "note", "dropped"),
        (None, "tags", "added as list"),
    ]


def test_the_same_schema_is_no_change() -> None:
    fields: list[tuple[int, str, Any]] = [(1, "id", "long")]
    assert list(schema_history(_table(fields, fields, current=1))) == []
