"""Checks of a table's future replica identity against its key, publication and writers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from cdclake.debezium.toast_placeholder import is_lost_when_unsent
from cdclake.plan import Column, Table
from cdclake.postgres.catalog import Relation, SourceTable, UniqueIndex
from cdclake.postgres.identity import (
    SPELLED,
    alter_identity,
    alterations,
    declared_identity,
    identifies,
    identity_columns,
    logs_whole_row,
    why_updates_fail,
    with_identity,
)
from cdclake.postgres.published import published_columns
from cdclake.postgres.quoting import identifier, identifiers, qualified
from cdclake.postgres.refusal import Refusal

# Since 18 PostgreSQL fails an UPDATE if the identity has an unpublished generated column.
_GENERATED_REFUSED = 180000


def check_identity(
    declared: Table, actual: SourceTable, may_alter: bool, version: int
) -> list[Refusal]:
    """Check that the table's identity exists, contains the key, and fits the column list."""
    wanted = declared_identity(declared, actual)
    key = frozenset(column.source for column in declared.key_columns)
    deferrable = deferrable_key(wanted, key)
    if deferrable is not None:
        return [_refuse_deferrable(wanted.source, *deferrable)]
    for relation in _all(wanted):
        reason = why_updates_fail(relation)
        if reason:
            return [_unidentified(declared, actual, relation.source, reason)]
    refusals = [
        *_check_chunks(declared),
        *_check_distinct(declared),
        *_check_key(declared, wanted),
        *_check_list(declared, wanted),
        *_check_unsent(declared, wanted),
        *_check_generated(wanted, version),
    ]
    changes = alterations(declared, actual)
    if changes and not may_alter:
        has = ", ".join(dict.fromkeys(SPELLED[r.identity] for r in _all(actual)))
        asked = " ".join(filter(None, (declared.replica_identity, declared.replica_identity_index)))
        refusals.append(
            Refusal(
                actual.source,
                f"`replica_identity: {asked}` is declared, but the source has {has}",
                "run in the source: " + " ".join(f"{change.sql};" for change in changes),
            )
        )
    return refusals


def deferrable_key(table: SourceTable, key: frozenset[str]) -> tuple[Relation, UniqueIndex] | None:
    """Return the deferrable index that alone makes the key unique, with its relation, or None."""
    if _enforced(table, key):
        return None
    for relation in _all(table):
        for index in relation.indexes:
            if not index.immediate and frozenset(index.columns) <= key:
                return relation, index
    return None


def is_unenforced(declared: Table, actual: SourceTable) -> bool:
    """Check whether no index makes the key unique, which identity full allows."""
    key = frozenset(column.source for column in declared.key_columns)
    return bool(key) and not _enforced(actual, key)


def _enforced(table: SourceTable, key: frozenset[str]) -> bool:
    return any(i.identifies and frozenset(i.columns) <= key for i in table.indexes)


def _refuse_deferrable(source: str, relation: Relation, index: UniqueIndex) -> Refusal:
    """Refuse a key that one row may take over before its owner gives it up.

    `UPDATE t SET id = id + 1` is then logged as: delete 1, insert 2, delete 2, insert 3. The newest
    event of key 2 is a delete, although the row exists. No replica identity changes that.
    """
    name, constraint = qualified(relation.schema, relation.table), identifier(index.name)
    kind = "PRIMARY KEY" if index.primary else "UNIQUE"
    return Refusal(
        source,
        f"its key ({', '.join(index.columns)}) is unique by the deferrable constraint"
        f" {index.name}: two rows may have the same key within a transaction, and the lake would"
        " delete a row that the source still has",
        f"run in the source: ALTER TABLE {name} DROP CONSTRAINT {constraint},"
        f" ADD CONSTRAINT {constraint} {kind} ({identifiers(index.columns)});",
    )


def _unidentified(declared: Table, actual: SourceTable, where: str, reason: str) -> Refusal:
    """Refuse a table whose UPDATEs would fail for their writer once it is published."""
    part = "" if where == actual.source else f" of its partition {where}"
    if declared.replica_identity_declared:
        wanted = declared.replica_identity
        name = declared.replica_identity_index
        what = f"index {name}" if wanted == "index" else wanted
        lacks = {
            "default": "there is no primary key",
            "index": "it is not a unique index that is valid, whole, not deferrable and NOT NULL",
            "full": reason,
        }[wanted]
        return Refusal(
            actual.source,
            f"`replica_identity: {what}` cannot be{part or ' had'}: {lacks}",
            f"under {actual.source} write `replica_identity: full`",
        )
    line = fitting_identity(actual)
    statements = " ".join(
        f"{alter_identity(relation).sql};" for relation in _all(with_identity(actual, line, None))
    )
    return Refusal(
        actual.source,
        f"once published, every UPDATE and DELETE{part or ' of it'} would fail: {reason}",
        f"under {actual.source} write `replica_identity: {line}`"
        f" (with --source, run there: {statements})",
    )


def fitting_identity(actual: SourceTable) -> Literal["default", "full"]:
    """Return the minimal identity that identifies every row, for tables whose updates fail."""
    keys = [relation.primary_key for relation in _all(actual)]
    return "default" if all(key is not None and key.identifies for key in keys) else "full"


def _all(table: SourceTable) -> tuple[Relation, ...]:
    return (table, *table.leaves)


def _check_key(declared: Table, wanted: SourceTable) -> list[Refusal]:
    """Check that the identity contains the whole key: a delete has only its columns."""
    key = frozenset(column.source for column in declared.key_columns)
    shown = ", ".join(column.source for column in declared.key_columns)
    refusals = []
    failing = [r.source for r in _all(wanted) if not identifies(r, key)]
    if key and failing:
        part = "" if failing[0] == wanted.source else f" of its partition {failing[0]}"
        logged = ", ".join(sorted(identity_columns(wanted)))
        refusals.append(
            Refusal(
                wanted.source,
                f"the replica identity{part} ({logged}) does not contain the key ({shown})",
                _key_remedy(wanted, key),
            )
        )
    elif key and not logs_whole_row(wanted) and not _unique(wanted, key):
        refusals.append(
            Refusal(
                wanted.source,
                f"no unique index is exactly on the key ({shown})",
                _key_remedy(wanted, key),
            )
        )
    return refusals


def _check_chunks(declared: Table) -> list[Refusal]:
    """Refuse keys that a resync cannot read in chunks.

    Debezium fails, with the whole connector, when it stores an array as the end of a chunk.
    `hstore` has no operator `>`.
    """
    refused = [c for c in declared.key_columns if c.column_type.array or c.type == "hstore"]
    return _refuse_key(declared, refused, "the connector could not read the table again in chunks")


def _check_distinct(declared: Table) -> list[Refusal]:
    """Refuse keys whose events do not distinguish all values."""
    return [
        refusal
        for column in declared.key_columns
        if (reason := column.column_type.collision)
        for refusal in _refuse_key(declared, [column], reason)
    ]


def _refuse_key(declared: Table, refused: Sequence[Column], reason: str) -> list[Refusal]:
    if not refused:
        return []
    shown = ", ".join(f"{column.source} ({column.column_type})" for column in refused)
    return [
        Refusal(
            declared.source,
            f"its key has {shown}: {reason}",
            f"under {declared.source} write `key:` with other unique columns, or remove it from"
            " `tables`",
        )
    ]


def _unique(table: SourceTable, key: frozenset[str]) -> bool:
    return any(i.identifies and frozenset(i.columns) == key for i in table.indexes)


def _key_remedy(wanted: SourceTable, key: frozenset[str]) -> str:
    index = next((i for i in wanted.indexes if i.identifies and frozenset(i.columns) == key), None)
    if index is not None:
        return f"under {wanted.source} write `replica_identity: index {index.name}`, or `full`"
    primary = wanted.primary_key
    own = f"write `key: [{', '.join(primary.columns)}]`, or " if primary is not None else ""
    columns = ", ".join(sorted(key))
    return (
        f"under {wanted.source} {own}write `replica_identity: full`, if never two rows have the"
        f" same ({columns}), not even within a transaction"
    )


def _check_list(declared: Table, wanted: SourceTable) -> list[Refusal]:
    """Check the column list: PostgreSQL fails each UPDATE if it lacks an identity column."""
    listed = published_columns(declared, wanted)
    if listed is None:
        return []
    left_out = [c.name for c in wanted.columns if not c.generated and c.name not in listed]
    for relation in _all(wanted):
        if logs_whole_row(relation):
            return [_refuse_omitted(declared, left_out)]
        missing = sorted(identity_columns(relation) - set(listed))
        if missing:
            message = (
                f"the replica identity of {relation.source} needs {', '.join(missing)}, which"
                " the declaration omits: once published, every UPDATE would fail"
            )
            lines = ", ".join(f"`{name}: {wanted.by_name[name].type}`" for name in missing)
            return [Refusal(wanted.source, message, f"declare {lines}")]
    return []


def _refuse_omitted(declared: Table, left_out: Sequence[str]) -> Refusal:
    """Refuse columns that do not flow, with identity FULL; one with an earlier name never can."""
    earlier = {name for column in declared.columns for name in column.renamed_from}
    taken = [identifier(name) for name in left_out if name in earlier]
    others = [identifier(name) for name in left_out if name not in earlier]
    ways = [f"declare {', '.join(others)} too"] if others else []
    if taken:
        ways.append(f"rename {', '.join(taken)} in the source: `renamed_from` lists that name")
    return Refusal(
        declared.source,
        f"replica identity FULL logs every column, but {', '.join(map(identifier, left_out))} must"
        " not leave the source: once published, every UPDATE would fail",
        f"{', and '.join(ways)}, or under {declared.source} write `replica_identity: default`",
    )


def _check_unsent(declared: Table, wanted: SourceTable) -> list[Refusal]:
    """Refuse types without a mark for an unsent large value: Debezium would write NULL."""
    if all(logs_whole_row(relation) for relation in _all(wanted)):
        return []
    lost = [
        f"{column.name} ({column.shown})"
        for column in wanted.columns
        if any(
            column.name == flowing.source and not flowing.is_nulled for flowing in declared.columns
        )
        and column.type is not None
        and is_lost_when_unsent(column.type)
    ]
    if not lost:
        return []
    message = (
        f"an UPDATE that does not change a large {', '.join(lost)} would set it to NULL in the"
        " lake: Debezium cannot mark an unsent value of such a type"
    )
    line = "`replica_identity: full`, which sends all values, or exclude the column"
    return [Refusal(wanted.source, message, f"under {wanted.source} write {line}")]


def _check_generated(wanted: SourceTable, version: int) -> list[Refusal]:
    generated = {column.name for column in wanted.columns if column.generated}
    if version < _GENERATED_REFUSED or not generated:
        return []
    if not any(logs_whole_row(r) or identity_columns(r) & generated for r in _all(wanted)):
        return []
    message = (
        f"its replica identity contains the generated {', '.join(sorted(generated))}: if published,"
        " every UPDATE would fail (PostgreSQL 18)"
    )
    remedy = f"under {wanted.source} write `replica_identity: default`"
    return [Refusal(wanted.source, message, remedy)]
