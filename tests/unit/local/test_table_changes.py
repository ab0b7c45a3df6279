"""What an `up` changed in one table."""

from __future__ import annotations

from typing import Any

from cdclake.local.lake.table_loads import LoadingTable, Read
from cdclake.local.table_changes import TableChange, _changed, _is_any
from cdclake.plan import Column, Table


def table(*columns: str) -> Table:
    return Table(
        schema="moma",
        table="artworks",
        name="artworks",
        topic="t",
        key=("id",),
        columns=tuple(Column(source=name, name=name, type="integer") for name in columns),
    )


NAMES: dict[str, Any] = {"table": "artworks", "source": "moma.artworks"}


def test_columns_that_came_and_went_and_the_rows_that_were_read() -> None:
    reads = {"artworks": Read(rows=123899, seconds=41.23)}
    found = _changed(table("id", "rating"), table("id", "bio"), False, {}, reads)
    assert found == TableChange(
        **NAMES,
        added_columns=("rating integer",),
        removed_columns=("bio",),
        rows=123899,
        seconds=41.2,
    )


def test_joined_table_has_no_added_columns_and_may_still_be_read() -> None:
    loads = {"artworks": LoadingTable(rows=5, estimated_rows=10)}
    found = _changed(table("id"), None, True, loads, {})
    assert found == TableChange(**NAMES, joined=True, rows=5, estimated_rows=10, reading=True)
    assert _is_any(found)


def test_kept_table_is_no_change() -> None:
    assert not _is_any(_changed(table("id"), table("id"), False, {}, {}))
    assert _is_any(
        _changed(table("id"), table("id"), False, {}, {"artworks": Read(rows=0, seconds=None)})
    )
