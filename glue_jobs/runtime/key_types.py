"""Types of a table's key columns in the source, and how PostgreSQL compares their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from cdclake.jobs.runtime.source import Connection
from cdclake.plan import Table
from cdclake.postgres.polled_sources import result_types
from cdclake.postgres.quoting import identifier, qualified

_OF_TABLE = """
SELECT attname::text, atttypid, atttypmod, attcollation FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""
_OF_RESULT = """
SELECT name, type::oid, modifier, 0::oid
FROM unnest(%s::text[], %s::bigint[], %s::int[]) AS result (name, type, modifier)
"""
# A domain compares as its base type, and may refuse keys that its table had before a check was
# added. The equality is that of the type's unique indexes: an extension's operator is not in
# pg_catalog.
_TYPES = """
WITH RECURSIVE step (name, type, modifier, collated) AS (
  {columns}
  UNION ALL
  SELECT name, typbasetype, typtypmod, collated FROM step JOIN pg_type ON oid = type
  WHERE typtype = 'd'
)
SELECT name, format_type(type, modifier), format_type(type, -1), typname::text,
  (SELECT nspname FROM pg_opclass
   JOIN pg_amop ON amopfamily = opcfamily AND amoplefttype = opcintype
     AND amoprighttype = opcintype AND amopstrategy = 3
   JOIN pg_operator ON pg_operator.oid = amopopr
   JOIN pg_namespace ON pg_namespace.oid = oprnamespace
   WHERE opcintype = type AND opcdefault
     AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'btree')),
  (SELECT format(' COLLATE %%I.%%I', nspname, collname) FROM pg_collation
   JOIN pg_namespace ON pg_namespace.oid = collnamespace
   WHERE pg_collation.oid = collated AND NOT collisdeterministic)
FROM step JOIN pg_type ON pg_type.oid = type AND typtype <> 'd'
"""
_BOUND = "SET LOCAL lock_timeout = '2s'"
# The file does not name their schemas, and the changelog has their texts.
_IN_OTHER_SCHEMAS = frozenset({"citext", "enum", "ltree"})
# Types with equal values of different texts, which no function of ours makes one.
_SEVERAL_TEXTS = frozenset({"citext", "interval", "jsonb", "numrange"})


@dataclass(frozen=True, slots=True)
class KeyType:
    """Type of a key column."""

    exact: str
    plain: str  # without its length or precision
    base: str
    schema: str = "pg_catalog"  # of its equality
    collation: str = ""  # a COLLATE clause, if different texts may be equal

    @property
    def equals(self) -> str:
        """The operator of its equality."""
        return f"OPERATOR({identifier(self.schema)}.=)"

    @property
    def is_cut(self) -> bool:
        """Check whether a cast may cut a value."""
        return self.exact != self.plain

    @property
    def has_several_texts(self) -> bool:
        """Check whether only the source knows which texts are equal."""
        return bool(self.collation) or self.base in _SEVERAL_TEXTS


def key_types(connection: Connection, table: Table) -> Mapping[str, KeyType]:
    """Return the type of each key column by its name in the source, of a domain its base type.

    If the table is gone, or PostgreSQL refuses the query, they are those of the file.
    """
    declared = {
        column.source: "text" if column.type in _IN_OTHER_SCHEMAS else column.type
        for column in table.key_columns
    }
    if table.is_query:
        found = _types_of_result(connection, table)
    else:
        name = qualified(table.schema, table.table)
        found = connection.execute(_TYPES.format(columns=_OF_TABLE), (name,)).fetchall()
    return {name: KeyType(kind, kind, kind) for name, kind in declared.items()} | {
        name: KeyType(exact, plain, base, schema or "pg_catalog", collation or "")
        for name, exact, plain, base, schema, collation in found
    }


def _types_of_result(connection: Connection, table: Table) -> Sequence[Sequence[Any]]:
    try:
        with connection.transaction():
            connection.execute(_BOUND)
            result = result_types(connection, table)
    except psycopg.Error:  # it is refused, or a migration locks what it reads
        return []
    return connection.execute(_TYPES.format(columns=_OF_RESULT), result).fetchall()
