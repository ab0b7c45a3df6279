"""Reasons why a table of the lake cannot go on with its declared columns."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from cdclake import naming
from cdclake.delivery_remedies import earlier_values_read
from cdclake.errors import APPLY_FILE, START_AGAIN
from cdclake.iceberg.evolution import can_become
from cdclake.plan import Column, Table
from cdclake.postgres.file_lines import renamed_line


def column_problems(before: Table, after: Table) -> list[str]:
    """Return why the stored table cannot have the declared columns."""
    problems = []
    for column in after.columns:
        old = predecessor(column, before)
        if old is None:
            problems += _takes_a_name(after.source, column, before)
        else:
            problems += _problems_of_column(before, old, column)
    return [*problems, *_unknown_names(before, after)]


def has_retyped_column(before: Table, after: Table) -> bool:
    """Return whether a column outside of the key has a type that the stored one cannot become."""
    return before.source == after.source and any(
        not can_become(old.column_type, column.column_type)
        for column in after.columns
        if (old := predecessor(column, before)) is not None and old.name not in before.key
    )


def predecessor(column: Column, before: Table) -> Column | None:
    """Return the column's previous declaration, under its name or the latest `renamed_from`."""
    old = {column.source: column for column in before.columns}
    return next((old[name] for name in column.names if name in old), None)


def _unknown_names(before: Table, after: Table) -> Iterator[str]:
    """Yield new columns with earlier names that the lake lacks, while one of its columns leaves.

    Otherwise a misspelt `renamed_from` would start the column again, without its values.
    """
    stays = {old.source for new in after.columns if (old := predecessor(new, before))}
    leaving = [c for c in before.columns if c.source not in {*stays, *after.excluded}]
    for column in after.columns if leaving else ():
        if not column.renamed_from or predecessor(column, before) is not None:
            continue
        if set(before.excluded) & {*column.names}:
            continue
        near = get_close_matches(column.renamed_from[-1], [c.source for c in leaving], n=1)
        meant = next((c for c in leaving if c.source in near), leaving[0])
        yield (
            f"{after.source}: no column of the lake has an earlier name of {column.source!r}"
            f" ({', '.join(column.renamed_from)}); write `{renamed_line(meant, column.source)}` if"
            f" it is {meant.source!r}, otherwise remove `renamed_from`"
        )


def _takes_a_name(table: str, column: Column, before: Table) -> list[str]:
    """Reject a new column that reuses another column's name in the lake, and so its values."""
    held = [old for old in before.columns if old.name == column.name]
    return [
        f"{table}: column {column.source!r} would take the name {column.name}, which {old.source!r}"
        f" has in the lake; write `{renamed_line(old, column.source)}` if it is the same column,"
        f" otherwise first {APPLY_FILE} with neither of them"
        for old in held
    ]


def _problems_of_column(table: Table, before: Column, after: Column) -> list[str]:
    problems = []
    if not can_become(before.column_type, after.column_type):
        problems.append(
            f"{table.source}: column {after.source!r} changed from {before.type} to {after.type};"
            f" {_way_to_type(table, before)}"
        )
    if (before.mask, before.truncate_to) != (after.mask, after.truncate_to):
        problems.append(f"{table.source}: the mask of column {after.source!r} changed")
    if before.name != after.name:
        names = [*before.renamed_from, before.source] if before.source != after.source else []
        names = names or list(before.renamed_from)
        listed = f"`renamed_from: [{', '.join(names)}]`"
        problems.append(
            f"{table.source}: column {after.source!r} is {before.name!r} in the lake and would"
            f" become {after.name!r}; "
            + (f"write {listed}" if names else "remove its `renamed_from`")
        )
    return problems


def _way_to_type(table: Table, column: Column) -> str:
    """Return the steps to another type of a column that the lake has."""
    if column.name in table.key:
        return f"a key keeps its types: {START_AGAIN}"
    return (
        f"remove it from the file, {APPLY_FILE}, {earlier_values_read(table.name, table.delivery)},"
        " and add it again with its new type: the lake then keeps its old values as"
        f" {naming.dropped_column(column.name, 1)}"
    )
