"""Admission of a declared table: all reasons why it cannot flow as declared, at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches

from cdclake import naming
from cdclake.debezium.types import ColumnType, same_in_the_lake
from cdclake.delivery_remedies import earlier_values_read
from cdclake.errors import APPLY_FILE, START_AGAIN
from cdclake.iceberg.evolution import can_become
from cdclake.plan import Column, Table
from cdclake.postgres.catalog import SourceColumn, SourceTable, TableId
from cdclake.postgres.file_lines import renamed_line, retyped_line
from cdclake.postgres.key_identity import check_identity
from cdclake.postgres.published import name_now, undeclared_columns
from cdclake.postgres.quoting import identifier, qualified
from cdclake.postgres.refusal import Refusal
from cdclake.postgres.source_names import check_names
from cdclake.postgres.type_lookup import check_type_lookup

_TIMES = {"timestamp", "timestamptz"}
_NOT_TABLES = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}


def check_table(
    declared: Table,
    actual: SourceTable | None,
    *,
    role: str,
    role_exists: bool = False,
    known: Collection[TableId] = (),
    may_alter: bool = False,
    sees_all_rows: bool = False,
    version: int = 0,
) -> list[Refusal]:
    """Return the reasons why the table cannot flow; empty if it can.

    `role`: the connector's.
    `known`: the source's tables, to suggest names.
    `may_alter`: the source is the embedded one, so `alterations` will be run.
    `sees_all_rows`: row-level security does not filter the connector's role.
    `version`: the server's version number.
    """
    if actual is None:
        return [missing(declared, known)]
    broken = check_kind(actual)
    if broken:
        return broken
    refusals = check_columns(declared, actual)
    if not refusals:  # the identity can only be checked if its columns exist
        refusals = check_identity(declared, actual, may_alter, version)
    for column in declared.columns:
        found = (check_validated(column, actual), check_type_lookup(column, declared, actual))
        refusals += [refusal for refusal in found if refusal is not None]
    verb = "ALTER" if role_exists else "CREATE"
    return refusals + _check_owner(actual) + _check_row_security(actual, role, sees_all_rows, verb)


def check_snapshot(actual: SourceTable, role: str, *, sees_all_rows: bool) -> list[Refusal]:
    """Return the reasons why a new snapshot of a streamed table would not have exactly its rows."""
    return check_kind(actual) or _check_row_security(actual, role, sees_all_rows, "ALTER")


def check_polled(
    declared: Table, actual: SourceTable | None, known: Collection[TableId]
) -> list[Refusal]:
    """Return the reasons why queries cannot read the table or view as it is declared."""
    if actual is None:
        return [missing(declared, known)]
    return check_columns(declared, actual)


def check_result(declared: Table, actual: Mapping[str, SourceColumn]) -> list[Refusal]:
    """Return the declared columns that differ from those of a query's result.

    A computed number has no precision, so that of a numeric is not compared: a value that the
    declared one cannot hold is quarantined. Values of an enum may be texts.
    """
    refusals = []
    for column in declared.columns:
        found = actual.get(column.source)
        if found is None:
            refusals.append(_not_returned(column, declared, actual))
        elif found.type is None or not _may_return(column.column_type, found.type):
            refusals.append(_returned_as(column, declared, found))
    return refusals


def _may_return(wanted: ColumnType, found: ColumnType) -> bool:
    if wanted.base == found.base == "numeric":
        return wanted.array == found.array
    return same_in_the_lake(wanted, found) or same_in_the_lake(_cast_target(wanted), found)


def _cast_target(kind: ColumnType) -> ColumnType:
    """Return the type to cast to in a query: an enum's name is not in the file."""
    return replace(kind, base="text") if kind.base == "enum" else kind


def _not_returned(column: Column, declared: Table, actual: Mapping[str, SourceColumn]) -> Refusal:
    near = get_close_matches(column.source, actual, n=1)
    meant = f"did you mean `{near[0]}`? " if near else ""
    return Refusal(
        declared.source,
        f"its query returns no column {column.source!r}",
        f"{meant}add it to the query, or remove `{column.source}` from `columns`",
    )


def _returned_as(column: Column, declared: Table, found: SourceColumn) -> Refusal:
    kind, name, also = found.type, identifier(column.source), ""
    if kind is not None:
        also = f", or write `{retyped_line(column, kind)}`{_first(column, kind, declared)}"
    target = _cast_target(column.column_type)
    remedy = f"cast it in the query, as in `(...)::{target} AS {name}`"
    if kind is not None and {kind.base, column.column_type.base} == _TIMES:
        # A cast would take the time zone of the session, which is not that of the writers.
        remedy = f"convert it in the query: `(...) AT TIME ZONE 'zone of its writers' AS {name}`"
    return Refusal(
        declared.source,
        f"column {column.source!r} is declared {column.type}, but the query returns the type"
        f" {found.shown}",
        remedy + also,
    )


def refuse_foreign(declared: Table, foreign: str) -> Refusal:
    """Refuse polls of changed rows, which could miss those of a foreign server's transactions."""
    return Refusal(
        declared.source,
        f"it reads the foreign table {foreign}, and when that server's transactions began cannot"
        " be seen here",
        "write `overlap_minutes:` under `poll:` with the longest that a transaction may last"
        " there; or let each poll sweep (`deletes: sweep` without `sweep_every`)",
    )


def missing(declared: Table, known: Collection[TableId]) -> Refusal:
    """Refuse a table that the source lacks, and suggest similar names."""
    spelled = {f"{schema}.{table}": (schema, table) for schema, table in known}
    elsewhere = [name for name, (_, table) in spelled.items() if table == declared.table]
    lowered = {name.lower(): name for name in spelled}
    near = get_close_matches(declared.source.lower(), lowered, n=2, cutoff=0.75)
    names = list(dict.fromkeys(elsewhere + [lowered[name] for name in near]))[:3]
    meant = f"did you mean {' or '.join(names)}? " if names else ""
    return Refusal(
        declared.source,
        "the source has no such table",
        f"{meant}create the table first (cdclake never does), or remove it from `tables`;"
        " names are spelled exactly as in PostgreSQL, capitals included",
    )


def check_kind(actual: SourceTable) -> list[Refusal]:
    """Refuse every relation without its own change stream, and names that Debezium cannot stream.

    Only logged ordinary and partitioned tables have one.
    """

    def refuse(message: str, remedy: str) -> list[Refusal]:
        return [Refusal(actual.source, message, remedy)]

    name = qualified(actual.schema, actual.table)
    if actual.kind in _NOT_TABLES:
        what = _NOT_TABLES[actual.kind]
        return refuse(f"it is {what}, which has no change stream", "declare the tables beneath it")
    if actual.partition_of is not None:
        root = ".".join(actual.partition_of)
        return refuse(
            f"it is a partition of {root}", f"declare {root}: its partitions come with it"
        )
    if actual.persistence == "t":
        return refuse("it is a temporary table", "remove it from `tables`")
    if actual.persistence == "u":
        return refuse("it is unlogged: no change is in the log", f"ALTER TABLE {name} SET LOGGED;")
    if actual.inherited:
        return refuse(
            "other tables inherit from it: their rows are read with it, their changes are not",
            f"declare the inheriting tables, and remove {actual.source} from `tables`",
        )
    for leaf in actual.leaves:
        leaf_name = qualified(leaf.schema, leaf.table)
        if leaf.kind == "f":
            return refuse(
                f"its partition {leaf.source} is a foreign table, which has no change stream",
                f"ALTER TABLE {name} DETACH PARTITION {leaf_name};",
            )
        if leaf.persistence == "u":
            return refuse(
                f"its partition {leaf.source} is unlogged", f"ALTER TABLE {leaf_name} SET LOGGED;"
            )
    return check_names(actual)


def check_columns(declared: Table, actual: SourceTable) -> list[Refusal]:
    """Return the declared columns that differ from those of the source."""
    refusals = [
        refusal
        for column in declared.columns
        if (refusal := check_column(column, declared, actual)) is not None
    ]
    for name in declared.excluded:
        if name not in actual.by_name:
            message = f"it has no column {name!r} to exclude"
            refusals.append(Refusal(actual.source, message, f"remove `{name}` from `columns`"))
    return refusals


def check_column(column: Column, declared: Table, actual: SourceTable) -> Refusal | None:
    """Return the reason why the column cannot flow as declared; None if it can."""
    present = name_now(column, actual.by_name)
    if present is None:
        return _gone(column, declared, actual)
    found = actual.by_name[present]
    if found.generated and declared.polling is None:
        return Refusal(
            actual.source,
            f"column {column.source!r} is generated, and generated columns are not in the stream",
            f"remove `{column.source}` from `columns`; compute it in a view of the lake",
        )
    return _check_type(column, found, declared, actual)


def check_validated(column: Column, actual: SourceTable) -> Refusal | None:
    """Refuse a streamed column that Debezium takes for NOT NULL and whose rows may have NULL."""
    present = name_now(column, actual.by_name)
    if present is None or not actual.by_name[present].unvalidated:
        return None
    return refuse_unvalidated(present, actual)


def refuse_unvalidated(column: str, actual: SourceTable) -> Refusal:
    """Refuse a column of the source whose NOT NULL is not validated."""
    name, of = qualified(actual.schema, actual.table), identifier(column)
    return Refusal(
        actual.source,
        f"column {column!r} is NOT NULL by a constraint that is NOT VALID: a NULL of an"
        " earlier row would arrive as 0, an empty text or 1970",
        "in the source fill the column and validate the constraint, or drop it: ALTER TABLE"
        f" {name} ALTER COLUMN {of} DROP NOT NULL;",
    )


def _gone(column: Column, declared: Table, actual: SourceTable) -> Refusal:
    near = get_close_matches(column.source, actual.by_name, n=1)
    meant = f"did you mean `{near[0]}`? " if near else ""
    alike = [
        name
        for name in undeclared_columns(declared, actual)
        if (kind := actual.by_name[name].type) and same_in_the_lake(column.column_type, kind)
    ]
    if alike:
        line = renamed_line(column, alike[0])
        meant += f"if it was renamed, write `{line}` in its place; else "
    return Refusal(
        actual.source,
        f"it has no column {column.source!r}",
        f"{meant}remove `{column.source}` from `columns`, or add it to the table",
    )


def _check_type(
    column: Column, found: SourceColumn, declared: Table, actual: SourceTable
) -> Refusal | None:
    if found.type is None:
        return Refusal(
            actual.source,
            f"column {column.source!r} is declared {column.type}, but has the type"
            f" {found.described}, which cdclake does not support",
            f"write `{column.source}: {{exclude: true}}`",
        )
    if same_in_the_lake(column.column_type, found.type):
        return None
    return Refusal(
        actual.source,
        f"column {column.source!r} is declared {column.type}, but has the type {found.shown}",
        f"write `{retyped_line(column, found.type)}`{_first(column, found.type, declared)}",
    )


def _first(column: Column, kind: ColumnType, declared: Table) -> str:
    """Return the step that precedes a declaration which the stored values do not allow."""
    if can_become(column.column_type, kind):
        return ""
    if column.name in declared.key:
        return f"; if it streams already, a key keeps its types: {START_AGAIN}"
    read = earlier_values_read(declared.name, declared.delivery)
    return (
        f"; if it streams already, first remove `{column.source}` from the file, {APPLY_FILE} and"
        f" {read}: the lake keeps the old values as {naming.dropped_column(column.name, 1)}"
    )


def _check_owner(actual: SourceTable) -> list[Refusal]:
    if actual.owned:
        return []
    return [
        Refusal(
            actual.source,
            "the user of --source does not own it, and only its owner can publish it",
            "connect as the table's owner or as a superuser",
        )
    ]


def _check_row_security(
    actual: SourceTable, role: str, sees_all_rows: bool, verb: str
) -> list[Refusal]:
    if sees_all_rows or not actual.row_security:
        return []
    return [
        Refusal(
            actual.source,
            f"row-level security would hide rows from the role {role} in snapshots",
            f"run in the source: {verb} ROLE {identifier(role)} BYPASSRLS;",
        )
    ]
