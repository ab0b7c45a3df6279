"""Quarantined records of other tables than the one whose rows are erased."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cdclake import naming
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.erasure.sought_values import SoughtValues
from cdclake.jobs.reader.duck import Reader
from cdclake.plan import Table
from cdclake.redrive.quarantined_records import event_source, is_of

_BATCH = 10_000
_CONTENT = ("key", "value", "headers", "reason")


def undeclared_tables(
    reader: Reader, declared: Collection[str], tables: Sequence[Table]
) -> list[str]:
    """Return the names of tables with records that the plan does not have; "" for records of none.

    They may be of a table that left the file. Records under a former name of one of the plan's
    tables are left out: an erasure of that table reads them.
    """
    if naming.QUARANTINE not in reader.catalog.names():
        return []
    topics = {table.topic for table in tables}
    sources = [(table.schema, table.table) for table in tables]  # an event may name a list
    found, names = set[str](), ", ".join(map(DUCKDB.text, declared))
    query = (
        f"SELECT coalesce(\"table\", ''), topic, value FROM {naming.QUARANTINE}"
        f" WHERE coalesce(\"table\", '') NOT IN ({names})"
    )
    with reader.open([], plain=[naming.QUARANTINE]) as session:
        result = session.execute(query)
        while batch := result.fetchmany(_BATCH):
            for named, topic, value in batch:
                if topic not in topics and event_source(value) not in sources:
                    found.add(named)
    return sorted(found)


def only_others_have(
    reader: Reader, table: Table, declared: Collection[str], sought: SoughtValues
) -> bool:
    """Check whether all records with sought values are known to be of other declared tables."""
    matched, others = sought.elsewhere(), {*declared} - {table.name}
    columns = ", ".join(_CONTENT)
    query = f'SELECT "table", topic, value, {columns} FROM {naming.QUARANTINE}'
    with reader.open([], plain=[naming.QUARANTINE]) as session:
        result = session.execute(query)
        while batch := result.fetchmany(_BATCH):
            for named, topic, value, *content in batch:
                if named in others and not is_of(table, named, topic, value):
                    continue
                if any(matched.in_value("", each) for each in content):
                    return False
    return True
