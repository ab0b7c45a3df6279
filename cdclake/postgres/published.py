"""Which of a source table's columns leave the database, and which stay."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from cdclake.plan import Column, Table
from cdclake.postgres.catalog import SourceTable


def name_now(column: Column, names: Collection[str]) -> str | None:
    """The name that the column has among those of its table now; None if it is not there.

    One that was declared as renamed beforehand still has an earlier one.
    """
    return next((name for name in column.names if name in names), None)


def as_named_now(declared: Table, names: Collection[str]) -> Table:
    """The table with its columns under the names that they have now; without those that are gone.

    For whoever reads the source itself.
    """
    found = [(column, name_now(column, names)) for column in declared.columns]
    columns = tuple(replace(column, source=name) for column, name in found if name is not None)
    return replace(declared, columns=columns)


def undeclared_columns(declared: Table, actual: SourceTable) -> tuple[str, ...]:
    """The source's columns that the file does not name, but for generated ones."""
    named = {*_flowing(declared, actual), *declared.excluded}
    return tuple(c.name for c in actual.columns if c.name not in named and not c.generated)


def omitted_columns(declared: Table, actual: SourceTable) -> tuple[str, ...]:
    """The source's columns that do not reach the lake: generated, excluded or undeclared."""
    flowing = _flowing(declared, actual)
    return tuple(column.name for column in actual.columns if column.name not in flowing)


def published_columns(declared: Table, actual: SourceTable) -> tuple[str, ...] | None:
    """The publication's column list; None where every column flows.

    Only where something is left out: a listed column cannot be dropped or given another type by its
    owner without changing the list first. Generated columns need none, the stream never has them.
    """
    flowing = _flowing(declared, actual)
    plain = [column.name for column in actual.columns if not column.generated]
    return None if flowing.issuperset(plain) else tuple(n for n in plain if n in flowing)


def _flowing(declared: Table, actual: SourceTable) -> set[str]:
    return {column.source for column in as_named_now(declared, actual.by_name).columns}
