"""The events that PostgreSQL's own word of the rows leads one to expect, and what they must hold.

Derived from the witness alone: an insert is a `c`, an update of the key is a `d` and a `c`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from cdclake.plan import Column, Table
from tests.recorded.recording import SALT, Witnessed
from tests.recorded.values import of_postgres

Row = dict[str, str | None]
T = TypeVar("T")
_HASH_LENGTHS = {"c_hash20": 20}  # Debezium cuts a hash to the length of the source's column
_NOT_HELD = ("infinity", "-infinity", "Infinity", "-Infinity", "NaN")
_TOO_LATE = "294276-"  # 64 bits of microseconds since 1970 end in the year 294247
_FINITE_STATES = ("date", "timestamp", "decimal")


@dataclass(frozen=True, slots=True)
class Expected:
    """One event: PostgreSQL's text of the key and of every value that must come with it."""

    op: str
    key: Row
    row: Row
    unsent: frozenset[str] = frozenset()


def expected_events(table: Table, said: Iterable[Witnessed]) -> Iterator[Expected]:
    """What the table's topic must hold, tombstones apart, in order."""
    for change in said:
        if change.before is not None:
            yield _deletion(table, change.before)
        if change.row is not None:
            yield _image(table, change)
        if change.op == "TRUNCATE":
            yield Expected("t", {}, {})


def _image(table: Table, change: Witnessed) -> Expected:
    assert change.row is not None
    moved = change.before is not None
    op = {"SNAPSHOT": "r", "INSERT": "c", "UPDATE": "c" if moved else "u"}[change.op]
    key = _key(table, change.row)
    sent_always = table.replica_identity == "full"
    unsent = frozenset() if sent_always else frozenset(change.unsent) - key.keys()
    flowing = {column.source for column in table.columns} - unsent
    row = {name: text for name, text in change.row.items() if name in flowing}
    return Expected(op, key, row, unsent)


def _deletion(table: Table, before: Row) -> Expected:
    key = _key(table, before)
    return Expected("d", key, dict(before) if table.replica_identity == "full" else key)


def _key(table: Table, row: Row) -> Row:
    return {column.source: row[column.source] for column in table.key_columns}


def expected_in_order(table: Table, said: Iterable[Witnessed]) -> Iterator[Expected]:
    """The same, in the order of `in_key_order`."""
    return in_key_order(
        expected_events(table, said),
        lambda event: event.op,
        lambda event: [str(text) for text in event.key.values()],
    )


def in_key_order(
    events: Iterable[T], op: Callable[[T], str], key: Callable[[T], list[str]]
) -> Iterator[T]:
    """The events, those of one snapshot by key: it promises no order."""
    for is_read, run in groupby(events, lambda event: op(event) == "r"):
        in_turn = list(run)
        yield from sorted(in_turn, key=key) if is_read else in_turn


def is_unheld(column: Column, text: str | None) -> bool:
    """Whether no value of the column's type in `<t>` says the same."""
    finite = column.column_type.state.startswith(_FINITE_STATES)
    return finite and text is not None and (text in _NOT_HELD or text.startswith(_TOO_LATE))


def value_of(column: Column, text: str | None) -> Any:
    """The value that must come, masked where the column is."""
    if text is None:
        return None
    if column.mask == "hash":
        digest = hashlib.sha256((SALT + text).encode()).hexdigest()
        return digest[: _HASH_LENGTHS.get(column.source)]
    if column.mask == "truncate":
        units = text.encode("utf-16-le")[: 2 * (column.truncate_to or 0)]
        return units.decode("utf-16-le", "replace")
    return of_postgres(column.column_type, text)
