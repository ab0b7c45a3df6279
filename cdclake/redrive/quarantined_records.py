"""Records of the quarantine that are a table's, under whatever name the file had it."""

from __future__ import annotations

from cdclake.debezium.changelog_rows import source_of
from cdclake.debezium.event_parts import json_object
from cdclake.debezium.refusals import RefusedEvent
from cdclake.iceberg.dialect import Dialect
from cdclake.plan import Table
from cdclake.redrive.failed_events import is_event


def may_be_of(table: Table, dialect: Dialect) -> str:
    """Return a condition on the records that may be the table's; `is_of` decides.

    A topic is that of the source's table. Records that were redriven have no partition, and the
    name of an object instead of a topic.
    """
    name, topic = dialect.text(table.name), dialect.text(table.topic)
    named = f"{dialect.name('table')} = {name}"
    return f"({named} OR topic = {topic} OR {dialect.name('partition')} IS NULL)"


def is_of(table: Table, named: str | None, topic: str | None, value: bytes | None) -> bool:
    """Check whether a record is the table's, by its name, its topic or the source of its event."""
    return table.name == named or table.topic == topic or names_source(table, value)


def names_source(table: Table, value: bytes | None) -> bool:
    """Check whether a record is an event of the source's table."""
    event = json_object(value)
    if event is None or not is_event(event):
        return False
    try:
        return source_of(event) == (table.schema, table.table)
    except RefusedEvent:
        return False
