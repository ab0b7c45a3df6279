"""A key that the source itself converts to the form of the changelog, and a look for its row."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from cdclake.errors import InputError
from cdclake.jobs.runtime.source import Connection
from cdclake.plan import Table
from cdclake.postgres import poll_queries
from cdclake.postgres.event_values import SESSION, log_value
from cdclake.postgres.quoting import identifier, qualified
from cdclake.trace.row_key import RowKey, check_words

_TYPES = """
SELECT attname::text, format_type(atttypid, atttypmod), format_type(atttypid, -1)
FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""


def key_by_source(connection: Connection, table: Table, words: Sequence[str]) -> RowKey:
    """Return the key as the connector writes it; the source itself converts its spelling."""
    check_words(table, words)
    for setting in SESSION:
        connection.execute(setting)
    types = _types(connection, table)
    pairs = list(zip(table.key_columns, words, strict=True))
    given = ", ".join(
        f"{_cast(types[column.source][0])} AS {_in_query(identifier(column.source))}"
        for column, _ in pairs
    )
    # A cast to varchar(n) or numeric(p,s) cuts silently, and would find another row.
    exact = " AND ".join(
        f"{_in_query(identifier(column.source))} = {_cast(types[column.source][1])}"
        if types[column.source][0] != types[column.source][1]
        else "true"
        for column, _ in pairs
    )
    compared = [word for column, word in pairs if len(set(types[column.source])) > 1]
    selected = ", ".join(_in_query(log_value(column, table)) for column, _ in pairs)
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


def has_row(connection: Connection, key: RowKey, row_filter: str = "true") -> bool:
    """Return whether the source has the row, and the condition holds for it."""
    equal = "OPERATOR(pg_catalog.=) %s"  # the search path of a query may have others
    columns = " AND ".join(
        f"{_in_query(identifier(c.source))} {equal}" for c in key.table.key_columns
    )
    rows = _in_query(f"{poll_queries.relation(key.table)} WHERE ({row_filter})")
    query = f"SELECT 1 FROM {rows} AND {columns} LIMIT 1"
    with connection.transaction():  # the search path ends with it
        connection.execute(poll_queries.search_path(key.table).encode())
        return connection.execute(query, key.words).fetchone() is not None


def _cast(kind: str) -> str:
    return f"CAST(%s AS {_in_query(kind)})"


def _in_query(text: str) -> str:
    """Return the text for a query with parameters, where the driver reads `%` as a placeholder."""
    return text.replace("%", "%%")


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
