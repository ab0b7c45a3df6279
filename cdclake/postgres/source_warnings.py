"""Warnings about a source although a pipeline can stream from it."""

from __future__ import annotations

from cdclake.plan import Plan
from cdclake.postgres.new_partitions import unfollowed_full
from cdclake.postgres.refusal import Refusal
from cdclake.postgres.server import settings_warnings
from cdclake.postgres.session import Session
from cdclake.postgres.source import read_catalog, read_server


def source_warnings(connection: Session, plan: Plan, *, embedded: bool) -> list[Refusal]:
    """Return settings that endanger the server, and tables whose new partitions lack identity.

    `embedded`: the database belongs to the lake, where new partitions get their root's identity.
    """
    warnings = settings_warnings(read_server(connection, plan.source_object))
    full = {(t.schema, t.table) for t in plan.tables if t.replica_identity == "full"}
    if not full or embedded:
        return warnings
    found = read_catalog(connection, tables=full)
    return [*warnings, *(unfollowed_full(table) for table in found if table.kind == "p")]
