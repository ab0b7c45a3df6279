"""Types of a table's key columns in the source, and how PostgreSQL compares their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdclake.jobs.runtime.source import Connection
from cdclake.plan import Table
from cdclake.postgres.quoting import identifier, qualified

# The equality is that of the type's unique indexes: an extension's operator is not in pg_catalog.
_TYPES = """
WITH RECURSIVE step(number, type) AS (
  SELECT attnum, atttypid FROM pg_attribute
  WHERE attrelid = to_regclass(%(table)s) AND attnum > 0 AND NOT attisdropped
  UNION ALL
  SELECT number, typbasetype FROM step JOIN pg_type ON oid = type WHERE typtype = 'd'
)
SELECT attname::text, format_type(atttypid, atttypmod), format_type(atttypid, -1), typname::text,
  (SELECT nspname FROM pg_opclass
   JOIN pg_amop ON amopfamily = opcfamily AND amoplefttype = opcintype
     AND amoprighttype = opcintype AND amopstrategy = 3
   JOIN pg_operator ON pg_operator.oid = amopopr
   JOIN pg_namespace ON pg_namespace.oid = oprnamespace
   WHERE opcintype = type AND opcdefault
     AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'btree')),
  (SELECT format(' COLLATE %%I.%%I', nspname, collname) FROM pg_collation
   JOIN pg_namespace ON pg_namespace.oid = collnamespace
   WHERE pg_collation.oid = attcollation AND NOT collisdeterministic)
FROM step JOIN pg_type ON pg_type.oid = type AND typtype <> 'd'
JOIN pg_attribute ON attrelid = to_regclass(%(table)s) AND attnum = number
"""
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
    """Return the type of each key column by its name in the source.

    Without the table it is that of the file; an enum's name is not in it, and its values are text.
    """
    declared = {
        column.source: "text" if column.type == "enum" else column.type
        for column in table.key_columns
    }
    types = {name: KeyType(kind, kind, kind) for name, kind in declared.items()}
    if table.is_query:
        return types
    found = connection.execute(_TYPES, {"table": qualified(table.schema, table.table)}).fetchall()
    return types | {
        name: KeyType(exact, plain, base, schema or "pg_catalog", collation or "")
        for name, exact, plain, base, schema, collation in found
    }
