"""Changes in the declared columns of a table, compared with an earlier pipeline file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cdclake.column_problems import predecessor
from cdclake.plan import Column, Table

ADD, REMOVE, EXCLUDE, UNDECLARE = "add", "remove", "exclude", "undeclare"
TYPE, RENAME, EARLIER_NAMES = "type", "rename", "earlier names"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChange:
    """Change of one column; `before` and `after` are types, or names of the source."""

    change: str
    column: str
    before: str | None = None
    after: str | None = None


def column_changes(before: Table, after: Table) -> list[ColumnChange]:
    """Return the changes of each column: first of those that flow on, then of the others."""
    return [*_of_flowing(before, after), *_of_others(before, after)]


def _of_flowing(before: Table, after: Table) -> Iterator[ColumnChange]:
    for column in after.columns:
        old = predecessor(column, before)
        if old is None:
            yield ColumnChange(change=ADD, column=column.source, after=column.type)
        else:
            yield from _of_column(old, column)


def _of_column(old: Column, new: Column) -> Iterator[ColumnChange]:
    compared = {
        RENAME: (old.source, new.source),
        TYPE: (old.type, new.type),
        EARLIER_NAMES: (", ".join(old.renamed_from), ", ".join(new.renamed_from)),
    }
    if old.source != new.source:
        del compared[EARLIER_NAMES]  # they follow from the new name
    for change, (was, becomes) in compared.items():
        if was != becomes:
            yield ColumnChange(change=change, column=new.source, before=was, after=becomes)


def _of_others(before: Table, after: Table) -> Iterator[ColumnChange]:
    """Yield the columns that no longer flow, and those that only the list of exclusions has."""
    known = {old.source for new in after.columns if (old := predecessor(new, before))}
    left = {column.source: column.type for column in before.columns if column.source not in known}
    for name, kind in left.items():
        change = EXCLUDE if name in after.excluded else REMOVE
        yield ColumnChange(change=change, column=name, before=kind)
    for name in after.excluded:
        if name not in before.excluded and name not in left:
            yield ColumnChange(change=EXCLUDE, column=name)
    flowing = {column.source for column in after.columns}
    for name in before.excluded:
        if name not in after.excluded and name not in flowing:
            yield ColumnChange(change=UNDECLARE, column=name)
