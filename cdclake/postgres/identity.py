"""Replica identities: the columns of the old row that PostgreSQL logs, and how to change them.

An UPDATE or DELETE of a published table fails for its writer if nothing identifies the row. For a
partitioned table the leaf decides that, while the stream announces the root's identity: both must
be right.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from cdclake.plan import Table
from cdclake.postgres.catalog import Relation, SourceTable
from cdclake.postgres.quoting import identifier, qualified
from cdclake.postgres.statement import Statement

Kind = Literal["default", "full", "index"]

_LETTERS: dict[Kind, Literal["d", "f", "i"]] = {"default": "d", "full": "f", "index": "i"}
SPELLED = {"d": "DEFAULT", "f": "FULL", "n": "NOTHING", "i": "USING INDEX"}


def logs_whole_row(relation: Relation) -> bool:
    """Check whether the whole old row is logged."""
    return relation.identity == "f"


def identity_columns(relation: Relation) -> frozenset[str]:
    """Return the logged columns of the old row; empty if an UPDATE would fail.

    A deferrable primary key identifies nothing, and neither does a dropped index.
    """
    if relation.identity == "f":
        columns = relation.columns if isinstance(relation, SourceTable) else ()
        return frozenset(column.name for column in columns if not column.generated)
    if relation.identity == "d":
        index = relation.primary_key
    elif relation.identity == "i":
        index = relation.index(relation.identity_index)
    else:
        index = None
    return frozenset(index.columns) if index is not None and index.identifies else frozenset()


def identifies(relation: Relation, key: frozenset[str]) -> bool:
    """Check that updates work, and that each contains at least the columns of `key`."""
    if logs_whole_row(relation):
        return True
    logged = identity_columns(relation)
    return bool(logged) and key <= logged


def why_updates_fail(relation: Relation) -> str:
    """Return why an UPDATE of the published relation would fail; empty if it would not."""
    if logs_whole_row(relation) or identity_columns(relation):
        return ""
    if relation.identity == "n":
        return "its replica identity is NOTHING"
    if relation.identity == "i":
        return "the index of its replica identity is gone"
    return "its replica identity is DEFAULT and it has no primary key"


def with_identity(table: SourceTable, kind: Kind, index: str | None) -> SourceTable:
    """Return the table as it would be after `alterations`, including its leaves."""

    def changed(relation: Relation) -> Relation:
        found = relation.index(index) if kind == "index" else None
        return replace(
            relation, identity=_LETTERS[kind], identity_index=None if found is None else found.name
        )

    root = changed(table)
    assert isinstance(root, SourceTable)
    return replace(root, leaves=tuple(changed(leaf) for leaf in table.leaves))


def declared_identity(declared: Table, actual: SourceTable) -> SourceTable:
    """Return the table with its declared identity; unchanged if none is declared."""
    if not declared.replica_identity_declared:
        return actual
    return with_identity(actual, declared.replica_identity, declared.replica_identity_index)


def alterations(declared: Table, actual: SourceTable) -> list[Statement]:
    """Return the statements that set the declared identity; none if the source has it."""
    wanted = declared_identity(declared, actual)
    pairs = zip((wanted, *wanted.leaves), (actual, *actual.leaves), strict=True)
    return [alter_identity(want) for want, have in pairs if _identity(want) != _identity(have)]


def alter_identity(relation: Relation) -> Statement:
    """Return the statement that sets the identity of `relation` on its table or partition."""
    identity = SPELLED[relation.identity]
    if relation.identity == "i" and relation.identity_index is not None:
        identity += f" {identifier(relation.identity_index)}"
    name = qualified(relation.schema, relation.table)
    return Statement(
        f"replica identity of {relation.source}",
        f"ALTER TABLE {name} REPLICA IDENTITY {identity}",
        blocks_writers=True,
    )


def _identity(relation: Relation) -> tuple[str, str | None]:
    return relation.identity, relation.identity_index if relation.identity == "i" else None
