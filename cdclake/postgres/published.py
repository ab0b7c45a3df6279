"""Which of a source table's columns leave the database, and which stay."""

from __future__ import annotations

from cdclake.plan import Table
from cdclake.postgres.catalog import SourceTable


def omitted_columns(declared: Table, actual: SourceTable) -> tuple[str, ...]:
    """The source's columns that do not reach the lake: generated, excluded or undeclared."""
    flowing = {column.source for column in declared.columns}
    return tuple(column.name for column in actual.columns if column.name not in flowing)


def published_columns(declared: Table, actual: SourceTable) -> tuple[str, ...] | None:
    """The publication's column list; None where every column flows.

    Only where something is left out: a listed column cannot be dropped by its owner without
    dropping the list first. Generated columns need none, the stream never has them.
    """
    flowing = {column.source for column in declared.columns}
    plain = [column.name for column in actual.columns if not column.generated]
    return None if flowing.issuperset(plain) else tuple(n for n in plain if n in flowing)
