"""A key as the user writes it, and in the form of the changelog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from cdclake.debezium.event_parts import field_of, json_object, row_image
from cdclake.debezium.field_values import reader
from cdclake.debezium.refusals import RefusedEvent
from cdclake.errors import InputError
from cdclake.jobs.runtime.source import Connection
from cdclake.plan import Column, Table
from cdclake.postgres.event_values import SESSION, log_value
from cdclake.postgres.quoting import identifier, qualified

_TYPES = """
SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""


@dataclass(frozen=True, slots=True)
class RowKey:
    """Key of one row; `values` are those of the changelog, by column."""

    table: Table
    words: tuple[str, ...]
    values: Mapping[str, Any]

    def matches(self, key: bytes | None, value: bytes | None) -> bool:
        """Check whether a record is of this row; one without a key has it in the row."""
        return self.is_in(row_image(json_object(value)) if key is None else json_object(key))

    def is_in(self, fields: Mapping[str, Any] | None) -> bool:
        """Check whether the fields of a key or of a row are those of this row."""
        if fields is None:
            return False
        try:
            return all(
                _read(column, fields) == self.values[column.name]
                for column in self.table.key_columns
            )
        except RefusedEvent:
            return False


def _read(column: Column, fields: Mapping[str, Any]) -> Any:
    found = field_of(column, fields)
    return None if found is None else reader(column.column_type, non_finite=True)(found)


def check_words(table: Table, words: Sequence[str]) -> None:
    """Raise InputError unless there is one word per column of the key."""
    if len(words) != len(table.key):
        raise InputError(
            f"the key of {table.name} has {len(table.key)} columns, and {len(words)} values are"
            " given",
            f"write `cdclake trace {table.name} {' '.join(name.upper() for name in table.key)}`",
        )


def key_by_source(connection: Connection, table: Table, words: Sequence[str]) -> RowKey:
    """Return the key as the connector writes it; the source itself converts its spelling."""
    check_words(table, words)
    for setting in SESSION:
        connection.execute(setting)
    types = _declared(table)
    if not table.is_query:
        relation = qualified(table.schema, table.table)
        types |= dict(connection.execute(_TYPES, (relation,)).fetchall())
    pairs = list(zip(table.key_columns, words, strict=True))
    given = ", ".join(
        f"CAST(%s AS {types[column.source]}) AS {identifier(column.source)}" for column, _ in pairs
    )
    selected = ", ".join(log_value(column, table) for column, _ in pairs)
    try:
        row = connection.execute(f"SELECT {selected} FROM (SELECT {given}) AS k", words).fetchone()
    except psycopg.DataError as error:
        raise InputError(
            f"{' '.join(words)!r} is no key of {table.name}: {error.diag.message_primary}",
            "write the values of the key's columns as PostgreSQL reads them",
        ) from None
    assert row is not None  # a SELECT without FROM has a row
    values = {column.name: value for (column, _), value in zip(pairs, row, strict=True)}
    return RowKey(table, tuple(words), values)


def _declared(table: Table) -> dict[str, str]:
    """Return the types of the file; an enum's name is not in it, and its values are text."""
    return {
        column.source: "text" if column.type == "enum" else column.type
        for column in table.key_columns
    }


def key_by_text(table: Table, words: Sequence[str]) -> RowKey:
    """Return the key without the source: only text and whole numbers have one spelling."""
    check_words(table, words)
    values: dict[str, Any] = {}
    for column, word in zip(table.key_columns, words, strict=True):
        kind = column.column_type
        if kind.conversion.value != "none" or kind.log not in ("string", "int", "bigint"):
            raise InputError(
                f"the source does not answer, and only it converts a {column.type}, the type of the"
                f" key column {column.name!r}",
                "start the source, and run the command again",
            )
        try:
            values[column.name] = word if kind.log == "string" else int(word)
        except ValueError:
            raise InputError(f"{word!r} is no {column.type}", "write a whole number") from None
    return RowKey(table, tuple(words), values)
