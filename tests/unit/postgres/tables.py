"""A declared table and the source's own, alike but for what a test changes."""

from __future__ import annotations

from typing import Any

from cdclake.debezium.types import parse_type
from cdclake.plan import Column, Plan, Table
from cdclake.postgres.catalog import Relation, SourceColumn, SourceTable, UniqueIndex
from cdclake.postgres.server import ServerState

PRIMARY = UniqueIndex(name="orders_pkey", columns=("id",), primary=True)
BY_NUMBER = UniqueIndex(name="orders_number", columns=("number",))


def column(name: str, spelling: str | None = "integer", **changes: Any) -> SourceColumn:
    known = parse_type(spelling) if spelling else None
    return SourceColumn(**{"name": name, "shown": spelling or "box", "type": known, **changes})


def actual(**changes: Any) -> SourceTable:
    return SourceTable(
        **{
            "schema": "public",
            "table": "orders",
            "indexes": (PRIMARY,),
            "columns": (
                column("id", nullable=False, number=1),
                column("number", nullable=False, number=2),
            ),
            **changes,
        }
    )


def leaf(name: str = "orders_1", **changes: Any) -> Relation:
    return Relation(**{"schema": "public", "table": name, "indexes": (PRIMARY,), **changes})


def declared(*columns: tuple[str, str], **changes: Any) -> Table:
    chosen = columns or (("id", "integer"), ("number", "integer"))
    return Table(
        **{
            "schema": "public",
            "table": "orders",
            "name": "orders",
            "topic": "shop.public.orders",
            "key": ("id",),
            "columns": tuple(Column(source=n, name=n, type=t) for n, t in chosen),
            **changes,
        }
    )


def plan(*tables: Table) -> Plan:
    return Plan(
        name="shop", source_database="shop", lake_database="lake", tables=tables or (declared(),)
    )


def server(**changes: Any) -> ServerState:
    """A healthy server before the first `up`, and a superuser on it."""
    return ServerState(
        **{
            "version": 170011,
            "wal_level": "logical",
            "standby": False,
            "database": "shop",
            "user": "me",
            "superuser": True,
            "creates_roles": True,
            "replicates": True,
            "creates_in_database": True,
            "rds": False,
            "role_replicates": False,
            "role_sees_all_rows": False,
            "role_exists": False,
            "max_slots": 10,
            "slots": 0,
            "max_senders": 10,
            "senders": 0,
            "slot_exists": False,
            "slot_active": False,
            "slot_plugin": "",
            "slot_database": "",
            "slot_wal_status": "",
            "publication_exists": False,
            "role_comment": "",
            "slot_wal_mb": 4096,
            "aurora": False,
            "encoding": "UTF8",
            **changes,
        }
    )
