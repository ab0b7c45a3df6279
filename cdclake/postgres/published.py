"""Columns of a source table that leave the database, and those that stay."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from cdclake.plan import Column, Table
from cdclake.postgres.catalog import SourceTable
from cdclake.postgres.identity import declared_identity, logs_whole_row


def name_now(column: Column, names: Collection[str]) -> str | None:
    """Return the column's current name among those of its table; None if it does not exist.

    A column whose rename was declared in advance still has an earlier name.
    """
    return next((name for name in column.names if name in names), None)


def as_named_now(declared: Table, names: Collection[str]) -> Table:
    """Return the table with the current names of its columns, without the missing ones.

    Used to read the source itself.
    """
    found = [(column, name_now(column, names)) for column in declared.columns]
    columns = tuple(replace(column, source=name) for column, name in found if name is not None)
    return replace(declared, columns=columns)


def undeclared_columns(declared: Table, actual: SourceTable) -> tuple[str, ...]:
    """Return the source's undeclared columns, except generated ones."""
    named = {*_flowing(declared, actual), *declared.excluded}
    return tuple(c.name for c in actual.columns if c.name not in named and not c.generated)


def omitted_columns(declared: Table, actual: SourceTable) -> tuple[str, ...]:
    """Return the columns that do not reach the lake: generated, excluded or undeclared."""
    flowing = _flowing(declared, actual)
    return tuple(column.name for column in actual.columns if column.name not in flowing)


def published_columns(declared: Table, actual: SourceTable) -> tuple[str, ...] | None:
    """Return the publication's column list; None if every column flows.

    There is a list only if a column is omitted or was renamed: the owner cannot drop a listed
    column or change its type without changing the list first. Generated columns need none, they are
    never streamed. The connector takes a renamed column under its earlier names, too: without a
    list, a new column of such a name would leave the database undeclared. PostgreSQL keeps the list
    by number, so a listed column may be renamed. With replica identity full, PostgreSQL allows no
    list: a rename makes none there.
    """
    flowing = _flowing(declared, actual)
    plain = [column.name for column in actual.columns if not column.generated]
    is_whole = flowing.issuperset(plain) and not _lists_renamed(declared, actual)
    return None if is_whole else tuple(n for n in plain if n in flowing)


def polled_columns(declared: Table, actual: SourceTable) -> tuple[str, ...] | None:
    """Return the columns that polls of the table read, generated ones included; None if all."""
    flowing = _flowing(declared, actual)
    names = tuple(column.name for column in actual.columns)
    return None if flowing.issuperset(names) else tuple(n for n in names if n in flowing)


def _lists_renamed(declared: Table, actual: SourceTable) -> bool:
    wanted = declared_identity(declared, actual)
    is_full = any(map(logs_whole_row, (wanted, *wanted.leaves)))
    return not is_full and any(column.renamed_from for column in declared.columns)


def _flowing(declared: Table, actual: SourceTable) -> set[str]:
    return {column.source for column in as_named_now(declared, actual.by_name).columns}
