"""Identity of an event, which it keeps when it is sent or appended again."""

from __future__ import annotations

from cdclake import naming
from cdclake.iceberg.dialect import Dialect
from cdclake.plan import Table

# Its partition and offset in Kafka are not part of it: they differ if Debezium sends it again.
_SOURCE_FACTS = (naming.EPOCH, naming.PHASE, naming.LSN, naming.OP)


def event_identity(table: Table, dialect: Dialect) -> str:
    """Return the columns of the changelog, separated by commas, that identify an event."""
    return ", ".join((*_SOURCE_FACTS, *map(dialect.name, table.key)))


def copy_number(table: Table, dialect: Dialect) -> str:
    """Return the number of a row among the copies of its event; the row that counts has 1.

    It is the row with the greatest position, which is also the state's; of rows with that position
    the first that was ingested.
    """
    return (
        f"row_number() OVER (PARTITION BY {event_identity(table, dialect)}"
        f" ORDER BY {naming.POSITION} DESC, {naming.INGESTED_AT})"
    )


def events_once(table: Table, changes: str, dialect: Dialect) -> str:
    """Return a relation with one row of each event in the changelog `changes`.

    Predicates on the key reach the scan of the changelog.
    """
    number = f"{copy_number(table, dialect)} AS cdc__copy"
    return f"(SELECT * FROM (SELECT *, {number} FROM {changes}) AS copies WHERE cdc__copy = 1)"
