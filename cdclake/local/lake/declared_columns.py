"""New columns of the source, written into the pipeline file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cdclake.config.added_columns import add_columns
from cdclake.jobs.runtime.source import source_tables
from cdclake.plan import Column, Plan
from cdclake.postgres.admission import refuse_unvalidated
from cdclake.postgres.catalog import SourceTable, TableId
from cdclake.postgres.file_lines import renamed_line, scalar
from cdclake.postgres.new_columns import find_new_columns, lines_to_write
from cdclake.postgres.published import name_now
from cdclake.postgres.refusal import Refusal
from cdclake.postgres.source_names import check_rereading


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredColumns:
    """Columns that were written into the file, and those that were not."""

    source: Mapping[TableId, SourceTable]
    added: Mapping[str, Mapping[str, str]]  # type by `schema.table` and column
    refused: Mapping[str, list[tuple[str, str]]]  # reason and remedy by `schema.table`


def declare_new_columns(
    dsn: str, plan: Plan, file: Path, *, is_first: bool = False
) -> DeclaredColumns:
    """Write the source's undeclared columns into the file of this plan, where it can hold them.

    Not those of a table that lacks a declared column: one of them may be that column, renamed. Nor,
    unless the lake `is_first` started with the plan, those of a table that cannot be read again.
    Raise InputError, with the file unchanged, if the source does not answer or the file cannot be
    changed.
    """
    source = source_tables(dsn, plan)
    added, refused = columns_to_declare(plan, source, is_first=is_first)
    if added:
        add_columns(file, added)
    return DeclaredColumns(
        source=source,
        added={".".join(table): types for table, types in added.items()},
        refused=refused,
    )


def columns_to_declare(
    plan: Plan, source: Mapping[TableId, SourceTable], *, is_first: bool = False
) -> tuple[dict[TableId, dict[str, str]], dict[str, list[tuple[str, str]]]]:
    """Return the types of new columns that the file can hold, and refusals of the others."""
    found = find_new_columns(plan, source)
    added: dict[TableId, dict[str, str]] = {}
    refused: dict[str, list[tuple[str, str]]] = {}
    for table in plan.tables:
        types = found.get(table.name, {})
        if not types:
            continue
        actual = source[(table.schema, table.table)]
        lacking = [c for c in table.columns if name_now(c, actual.by_name) is None]
        unread = [] if is_first else check_rereading(table.schema, table.table)
        refusals = {c: _refusal(c, kind, actual, lacking, unread) for c, kind in types.items()}
        if wanted := {c: kind for c, kind in types.items() if kind and not refusals[c]}:
            added[(table.schema, table.table)] = wanted
        if others := [refusal for refusal in refusals.values() if refusal]:
            refused[table.source] = others
    return added, refused


def _refusal(
    column: str,
    kind: str | None,
    actual: SourceTable,
    lacking: list[Column],
    unread: list[Refusal],
) -> tuple[str, str] | None:
    """Return why the column is not written, and what to do; None if it is."""
    lines = lines_to_write(column, kind)
    if actual.by_name[column].unvalidated:
        refusal = refuse_unvalidated(column, actual)
        return refusal.message, f"{refusal.remedy} Or {lines}"
    if kind is None:
        return f"the lake cannot hold column {column!r}", lines
    if unread:
        return (
            f"column {column!r} is new, and {unread[0].message}",
            f"if no lake streams the table yet, {lines}; otherwise {lines_to_write(column, None)},"
            f" or {unread[0].remedy}",
        )
    if not lacking:
        return None
    # The lines of all of them, since only the right one has the column's mask.
    renamed = [
        f"if {missing.source!r} was renamed, write its line as"
        f" `{renamed_line(replace(missing, type=kind), column)}`"
        for missing in lacking
    ]
    names = [missing.source for missing in lacking]
    quoted, plain = ", ".join(map(repr, names)), ", ".join(f"`{scalar(name)}`" for name in names)
    are_missing = f" {quoted} is missing" if len(names) == 1 else f"s {quoted} are missing"
    return (
        f"column {column!r} is new, and the declared column{are_missing}",
        f"{'; '.join(renamed)}; otherwise remove {plain}, and {lines}",
    )
