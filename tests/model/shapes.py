"""The tables that scenarios run in, and what may be declared of them."""

from __future__ import annotations

from typing import Any

from cdclake.plan import Column, Plan, Table


def _columns(**types: str) -> tuple[Column, ...]:
    return tuple(Column(source=name, name=name, type=kind) for name, kind in types.items())


_PLAIN = _columns(id="bigint", v="text", big="text")

SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "soft": {"deletes": "soft"},
    "full": {"replica_identity": "full"},
    "pair": {"key": ("id", "b"), "columns": _columns(id="bigint", b="text", v="text", big="text")},
    "forms": {
        "columns": _columns(
            id="bigint", v="text", bytes="bytea", doc="jsonb", map="hstore", texts="text[]",
            numbers="integer[]", days="date[]", ids="uuid[]",
        ),
    },
    "truth": {"columns": _columns(id="bigint", v="boolean", big="text")},
}  # fmt: skip


def shaped_table(shape: str, name: str = "t") -> Table:
    """A table of that shape, under that name."""
    facts: dict[str, Any] = {
        "schema": "public", "table": name, "name": name, "topic": f"x.public.{name}",
        "key": ("id",), "columns": _PLAIN,
    }  # fmt: skip
    return Table(**{**facts, **SHAPES[shape]})


def plan_with(table: Table) -> Plan:
    """A plan of that table alone."""
    return Plan(name="x", source_database="d", lake_database="cdc", tables=(table,))
