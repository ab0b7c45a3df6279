"""Rights of the pipeline's role on objects that may belong to other roles.

PostgreSQL reports success, with a warning, if a user grants a privilege that the user only has
without the grant option: the role then gets nothing. So the rights are checked before anything is
changed, and again after the grants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cdclake.naming import SOURCE_SCHEMA
from cdclake.plan import Plan
from cdclake.postgres import queries
from cdclake.postgres.catalog import SourceTable, TableId
from cdclake.postgres.prepare import SYSTEM_COLUMNS, ColumnList, polled_lists
from cdclake.postgres.query_schemas import read_query_schemas
from cdclake.postgres.quoting import identifier, qualified
from cdclake.postgres.refusal import Refusal
from cdclake.postgres.session import Session

_PRIVILEGES = {"database": "CONNECT", "schema": "USAGE", "relation": "SELECT"}


def check_role_rights(
    connection: Session,
    plan: Plan,
    tables: Mapping[TableId, SourceTable],
    user: str,
    *,
    is_granted: bool,
) -> list[Refusal]:
    """Return the rights that the pipeline's role lacks after the grants, or would lack.

    Relations that only their owner can publish are not among them.

    `tables`: the source's relations; missing ones are ignored.
    `user`: the session's.
    `is_granted`: the grants have been run.
    """
    polled = _polled_lists(plan, tables)
    schemas = {SOURCE_SCHEMA, *(t.schema for t in plan.tables), *(schema for schema, _ in polled)}
    schemas |= {*(read_query_schemas(connection, plan) or ())}
    fields = [(*table, field) for table, names in polled.items() for field in _fields(names)]
    rows = connection.execute(
        queries.ROLE_RIGHTS,
        {
            "role": plan.source_object,
            "schemas": sorted(schemas),
            "tables": [schema for schema, _, _ in fields],
            "names": [name for _, name, _ in fields],
            "columns": [field for _, _, field in fields],
        },
    )
    return [
        _refusal(kind, schema, name, owner, role=plan.source_object, user=user)
        for kind, schema, name, owner, has, will_have in rows
        if not (has if is_granted else will_have)
    ]


def _polled_lists(
    plan: Plan, tables: Mapping[TableId, SourceTable]
) -> Mapping[TableId, ColumnList]:
    present = tuple(t for t in plan.polled if t.is_query or (t.schema, t.table) in tables)
    return polled_lists(replace(plan, polled=present), tables)


def _fields(names: ColumnList) -> tuple[str | None, ...]:
    """Return the columns to be checked; None is the whole relation."""
    return (None,) if names is None else (*names, *SYSTEM_COLUMNS)


def _refusal(kind: str, schema: str, name: str, owner: str, *, role: str, user: str) -> Refusal:
    privilege, is_relation = _PRIVILEGES[kind], kind == "relation"
    subject = f"{schema}.{name}" if is_relation else f"{kind} {name}"
    target = qualified(schema, name) if is_relation else f"{kind.upper()} {identifier(name)}"
    return Refusal(
        subject,
        f"the role {role} needs {privilege} on it, which the user {user} may not grant:"
        f" it belongs to {owner}",
        f"as {owner} or a superuser run in the source:"
        f" GRANT {privilege} ON {target} TO {identifier(user)} WITH GRANT OPTION;",
    )
