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
    is_named = table.name == named or table.topic == topic
    return is_named or event_source(value) == (table.schema, table.table)


def event_source(value: bytes | None) -> tuple[str, str] | None:
    """Return schema and table of the source that a record's event names, None if it names none."""
    event = json_object(value)
    if event is None or not is_event(event):
        return None
    try:
        return source_of(event)
    except RefusedEvent:
        return None
