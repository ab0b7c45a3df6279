"""Spellings of keys in the lake, where only the source knows which texts are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cdclake import naming
from cdclake.debezium.key_spelling import one_spelling
from cdclake.debezium.record_key import record_key
from cdclake.debezium.types import Conversion
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.runtime.key_types import KeyType, key_types
from cdclake.jobs.runtime.source import Connection
from cdclake.jobs.runtime.source_key import equal_pairs
from cdclake.plan import Table
from cdclake.redrive.quarantined_records import is_of, may_be_of
from cdclake.trace.row_key import RowKey

_BATCH = 10_000

StoredKey = Sequence[Any]


def stored_spellings(
    connection: Connection, reader: Callable[[], Reader], keys: Sequence[RowKey]
) -> list[RowKey]:
    """Return the keys of the lake that the source takes for equal to one of these, newest first.

    There is none if each column of the key has one text per value.
    """
    table = keys[0].table
    types = _asked_types(connection, table)
    if not types:
        return []
    words = [key.words for key in keys]
    found: dict[tuple[Any, ...], RowKey] = {}
    for stored in _stored_keys(reader(), table):
        for number, place in equal_pairs(connection, types, words, stored):
            key, values = keys[number], stored[place]
            if _is_equal_elsewhere(key, values, types):
                spelled = RowKey(table, key.words, dict(zip(table.key, values, strict=True)))
                found.setdefault(tuple(spelled.parts), spelled)
    return list(found.values())


def _asked_types(connection: Connection, table: Table) -> Mapping[int, KeyType]:
    """Return the types of the columns that the source has to compare, by place in the key."""
    types = key_types(connection, table)
    kinds = (types[column.source] for column in table.key_columns)
    return {place: kind for place, kind in enumerate(kinds) if kind.has_several_texts}


def _is_equal_elsewhere(key: RowKey, values: StoredKey, types: Mapping[int, KeyType]) -> bool:
    """Check whether the columns that the source does not compare are equal."""
    return all(
        place in types or one_spelling(value, column.column_type) == wanted
        for place, (column, value, wanted) in enumerate(
            zip(key.table.key_columns, values, key.parts, strict=True)
        )
    )


def _stored_keys(reader: Reader, table: Table) -> Iterator[Sequence[StoredKey]]:
    """Yield the distinct keys of changelog, state and quarantine in batches."""
    names = reader.catalog.names()
    plain = [n for n in (table.changes, table.name, naming.QUARANTINE) if n in names]
    # The changelog has the key of every row of the state, perhaps in another form.
    is_alike = all(c.column_type.conversion is Conversion.NONE for c in table.key_columns)
    columns = ", ".join(DUCKDB.name(column.name) for column in table.key_columns)
    relations = [n for n in plain if n == table.changes or (n == table.name and is_alike)]
    with reader.open([], plain=plain) as session:
        rows = " UNION ALL ".join(
            f"SELECT {columns}, {naming.POSITION} FROM {DUCKDB.name(name)}" for name in relations
        )
        if relations:
            result = session.execute(
                f"SELECT {columns} FROM ({rows}) AS cdc__keys"
                f" GROUP BY {columns} ORDER BY max({naming.POSITION}) DESC"
            )
            while batch := result.fetchmany(_BATCH):
                yield batch
        if naming.QUARANTINE in plain:
            yield from _refused_keys(session, table)


def _refused_keys(session: Any, table: Table) -> Iterator[Sequence[StoredKey]]:
    """Yield the keys of quarantined records, as far as they can be read."""
    result = session.execute(
        f'SELECT DISTINCT "table", topic, key, value FROM {naming.QUARANTINE}'
        f" WHERE {may_be_of(table, DUCKDB)}"
    )
    while batch := result.fetchmany(_BATCH):
        keys = (
            record_key(table, key, value)
            for named, topic, key, value in batch
            if is_of(table, named, topic, value)
        )
        yield [key for key in keys if key is not None]
