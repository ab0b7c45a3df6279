"""A key as the user writes it, and in the form of the changelog."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cdclake.debezium.record_key import comparable_key, key_in, record_key
from cdclake.errors import InputError
from cdclake.plan import Table

# Types whose values the changelog has in one spelling, and the function that returns it.
_READERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("text", "varchar", "citext", "enum"), str),
    **dict.fromkeys(("smallint", "integer", "bigint", "oid"), int),
    "uuid": lambda word: str(UUID(word)),
}


@dataclass(frozen=True, slots=True)
class RowKey:
    """Key of one row; `values` are those of the changelog, by column."""

    table: Table
    words: tuple[str, ...]
    values: Mapping[str, Any]

    def matches(self, key: bytes | None, value: bytes | None) -> bool:
        """Check whether a record is of this row; one without a key has it in the row."""
        return record_key(self.table, key, value) == self.parts

    def is_in(self, fields: Mapping[str, Any] | None) -> bool:
        """Check whether the fields of a key or of a row are those of this row."""
        return key_in(self.table, fields) == self.parts

    @property
    def parts(self) -> list[Any]:
        """Values in the order of the key's columns, as `record_key` returns them."""
        return comparable_key(self.table, (self.values[name] for name in self.table.key))


def check_words(table: Table, words: Sequence[str]) -> None:
    """Raise InputError unless there is one word per column of the key."""
    if len(words) != len(table.key):
        columns = "one column" if len(table.key) == 1 else f"{len(table.key)} columns"
        raise InputError(
            f"the key of {table.name} has {columns}, not {len(words)}",
            f"write `cdclake trace {table.name} {' '.join(name.upper() for name in table.key)}`",
        )


def key_by_text(table: Table, words: Sequence[str], *, is_deployed: bool = False) -> RowKey:
    """Return the key without the source: text, whole numbers and UUIDs need no conversion by it.

    Raise InputError for a key of other types; of a deployment's lake, whose source is not asked, it
    names the query that shows the key's events.
    """
    check_words(table, words)
    values: dict[str, Any] = {}
    for column, word in zip(table.key_columns, words, strict=True):
        kind = column.column_type
        if kind.array or kind.base not in _READERS:
            why = "is not asked for a deployment" if is_deployed else "does not answer"
            raise InputError(
                f"the source {why}, and only it converts a {column.type}, the type of the key"
                f" column {column.name!r}",
                f"query {table.changes} by `cdclake sql --target aws`"
                if is_deployed
                else "start the source, and run the command again",
            )
        try:
            values[column.name] = _READERS[kind.base](word)
        except ValueError:
            spelling = "a UUID" if kind.base == "uuid" else "a whole number"
            raise InputError(f"{word!r} is no {column.type}", f"write {spelling}") from None
    return RowKey(table, tuple(words), values)
