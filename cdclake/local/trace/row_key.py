"""A key as the user writes it, and in the form of the changelog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from cdclake.debezium.record_key import key_in, record_key
from cdclake.errors import InputError
from cdclake.jobs.runtime.source import Connection
from cdclake.plan import Table
from cdclake.postgres.event_values import SESSION, log_value
from cdclake.postgres.quoting import identifier, qualified

_TYPES = """
SELECT attname::text, format_type(atttypid, atttypmod), format_type(atttypid, -1)
FROM pg_attribute
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
        return record_key(self.table, key, value) == self.parts

    def is_in(self, fields: Mapping[str, Any] | None) -> bool:
        """Check whether the fields of a key or of a row are those of this row."""
        return key_in(self.table, fields) == self.parts

    @property
    def parts(self) -> list[Any]:
        """Values in the order of the key's columns."""
        return [self.values[name] for name in self.table.key]


def check_words(table: Table, words: Sequence[str]) -> None:
    """Raise InputError unless there is one word per column of the key."""
    if len(words) != len(table.key):
        columns = "one column" if len(table.key) == 1 else f"{len(table.key)} columns"
        raise InputError(
            f"the key of {table.name} has {columns}, not {len(words)}",
            f"write `cdclake trace {table.name} {' '.join(name.upper() for name in table.key)}`",
        )


def key_by_source(connection: Connection, table: Table, words: Sequence[str]) -> RowKey:
    """Return the key as the connector writes it; the source itself converts its spelling."""
    check_words(table, words)
    for setting in SESSION:
        connection.execute(setting)
    types = _types(connection, table)
    pairs = list(zip(table.key_columns, words, strict=True))
    given = ", ".join(
        f"CAST(%s AS {types[column.source][0]}) AS {identifier(column.source)}"
        for column, _ in pairs
    )
    # A cast to varchar(n) or numeric(p,s) cuts silently, and would find another row.
    exact = " AND ".join(
        f"{identifier(column.source)} = CAST(%s AS {types[column.source][1]})"
        if types[column.source][0] != types[column.source][1]
        else "true"
        for column, _ in pairs
    )
    compared = [word for column, word in pairs if len(set(types[column.source])) > 1]
    selected = ", ".join(log_value(column, table) for column, _ in pairs)
    query = f"SELECT {exact}, {selected} FROM (SELECT {given}) AS k"
    try:
        row = connection.execute(query, [*compared, *words]).fetchone()
    except psycopg.DataError as error:
        raise InputError(
            f"{' '.join(words)!r} is no key of {table.name}: {error.diag.message_primary}",
            "write the values of the key's columns as PostgreSQL reads them",
        ) from None
    assert row is not None  # a SELECT without FROM has a row
    if not row[0]:
        raise InputError(
            f"{' '.join(words)!r} is no key of {table.name}: it does not fit"
            f" {', '.join(types[column.source][0] for column, _ in pairs)}",
            "write the values of the key's columns as the source has them",
        )
    values = {column.name: value for (column, _), value in zip(pairs, row[1:], strict=True)}
    return RowKey(table, tuple(words), values)


def _types(connection: Connection, table: Table) -> dict[str, tuple[str, str]]:
    """Return the type of each key column, also without its length or precision.

    Without the table it is that of the file; an enum's name is not in it, and its values are text.
    """
    declared = {
        column.source: "text" if column.type == "enum" else column.type
        for column in table.key_columns
    }
    types = {name: (kind, kind) for name, kind in declared.items()}
    if table.is_query:
        return types
    found = connection.execute(_TYPES, (qualified(table.schema, table.table),)).fetchall()
    return types | {name: (exact, plain) for name, exact, plain in found}


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
