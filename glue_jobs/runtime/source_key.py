"""A key that the source itself converts to the form of the changelog, and a look for its row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import psycopg

from cdclake.errors import InputError
from cdclake.jobs.runtime.key_types import KeyType, key_types
from cdclake.jobs.runtime.source import Connection
from cdclake.plan import Table
from cdclake.postgres import poll_queries
from cdclake.postgres.event_values import SESSION, log_value
from cdclake.postgres.quoting import identifier
from cdclake.trace.row_key import RowKey, check_words


def key_by_source(connection: Connection, table: Table, words: Sequence[str]) -> RowKey:
    """Return the key as the connector writes it; the source itself converts its spelling."""
    check_words(table, words)
    for setting in SESSION:
        connection.execute(setting)
    types = key_types(connection, table)
    pairs = list(zip(table.key_columns, words, strict=True))
    given = ", ".join(
        f"{_cast(types[column.source].exact)} AS {_in_query(identifier(column.source))}"
        for column, _ in pairs
    )
    # A cast to varchar(n) or numeric(p,s) cuts silently, and would find another row.
    exact = " AND ".join(
        f"{_in_query(identifier(column.source))} = {_cast(types[column.source].plain)}"
        if types[column.source].is_cut
        else "true"
        for column, _ in pairs
    )
    compared = [word for column, word in pairs if types[column.source].is_cut]
    selected = ", ".join(_in_query(log_value(column, table)) for column, _ in pairs)
    query = f"SELECT {exact}, {selected} FROM (SELECT {given}) AS k"
    try:
        row = connection.execute(query, [*compared, *words]).fetchone()
    except psycopg.DataError as error:
        raise InputError(
            f"invalid key {' '.join(words)!r} of {table.name}: {error.diag.message_primary}",
            "write one value per key column, in the form that PostgreSQL accepts",
        ) from None
    assert row is not None  # a SELECT without FROM has a row
    if not row[0]:
        raise InputError(
            f"invalid key {' '.join(words)!r} of {table.name}: it does not fit"
            f" {', '.join(types[column.source].exact for column, _ in pairs)}",
            "write the values of the key's columns as the source has them",
        )
    values = {column.name: value for (column, _), value in zip(pairs, row[1:], strict=True)}
    return RowKey(table, tuple(words), values)


def has_row(connection: Connection, key: RowKey, row_filter: str = "true") -> bool:
    """Return whether the source has the row, and the condition holds for it."""
    types = key_types(connection, key.table)
    columns = " AND ".join(
        f"{_in_query(identifier(c.source))} {_in_query(types[c.source].equals)} %s"
        for c in key.table.key_columns
    )
    rows = _in_query(f"{poll_queries.relation(key.table)} WHERE ({row_filter})")
    query = f"SELECT 1 FROM {rows} AND {columns} LIMIT 1"
    with connection.transaction():  # the search path ends with it
        connection.execute(poll_queries.search_path(key.table).encode())
        return connection.execute(query, key.words).fetchone() is not None


def equal_pairs(
    connection: Connection,
    types: Mapping[int, KeyType],
    words: Sequence[Sequence[str]],
    stored: Sequence[Sequence[str]],
) -> Iterator[tuple[int, int]]:
    """Yield the places of each given key and of a stored one that the source takes for equal.

    Only the columns of `types` are compared, which are named by their places in the keys. A stored
    key may be older than the column's type; if it is no value of the type, it is equal to none, and
    is found by halving.
    """
    names, given = ", ".join(f"c{n}" for n in types), ", ".join("%s::text[]" for _ in types)
    equal = " AND ".join(
        f"CAST(k.c{n} AS {_in_query(kind.plain)}){_in_query(kind.collation)}"
        f" {_in_query(kind.equals)} CAST(s.c{n} AS {_in_query(kind.plain)})"
        for n, kind in types.items()
    )
    query = (
        f"SELECT k.number, s.number FROM unnest({given}) WITH ORDINALITY AS k({names}, number)"
        f" JOIN unnest({given}) WITH ORDINALITY AS s({names}, number) ON {equal}"
    )
    texts = [[key[n] for key in keys] for keys in (words, stored) for n in types]
    try:
        pairs = connection.execute(query, texts).fetchall()
    except psycopg.DataError:
        if len(stored) > 1:
            yield from _pairs_of_halves(connection, types, words, stored)
        return
    for one, other in pairs:
        yield one - 1, other - 1


def _pairs_of_halves(
    connection: Connection,
    types: Mapping[int, KeyType],
    words: Sequence[Sequence[str]],
    stored: Sequence[Sequence[str]],
) -> Iterator[tuple[int, int]]:
    half = len(stored) // 2
    for start, part in ((0, stored[:half]), (half, stored[half:])):
        for one, other in equal_pairs(connection, types, words, part):
            yield one, start + other


def _cast(kind: str) -> str:
    return f"CAST(%s AS {_in_query(kind)})"


def _in_query(text: str) -> str:
    """Return the text for a query with parameters, where the driver reads `%` as a placeholder."""
    return text.replace("%", "%%")
