"""Where the values of a traced row are stored, and where they can still be, for a reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cdclake import naming
from cdclake.debezium.topics import LONGEST_KEPT_DAYS
from cdclake.firehose.redrive_stream import lateness_minutes
from cdclake.plan import Plan, Table
from cdclake.trace.trace_facts import TraceFacts


def row_values(facts: TraceFacts) -> list[tuple[str, str]]:
    """Return columns and texts of the row's key and of every value that it has had."""
    table = facts.table
    values = set(zip(table.key, facts.key, strict=True))
    names = {column.name for column in table.columns}
    rows = [event.values for event in facts.events]
    for row in (*rows, facts.state_row, facts.current_row):
        values |= {
            (name, str(value))
            for name, value in (row or {}).items()
            if (name in names or naming.is_dropped_column(name))
            and (value is not None and not isinstance(value, bool) and value != "")
        }
    return sorted(values)


def places_outside(plan: Plan, table: Table, *, in_kafka: bool) -> list[dict[str, str]]:
    """Return the places that the search does not read, each with the end of what it keeps.

    `in_kafka`: the table's topic may have its events.
    """
    places = [
        (f"{table.schema}.{table.table} in the source, its WAL and its backups", "deleted there"),
        ("memory and temporary files of running processes", "they end"),
    ]
    if in_kafka:
        kept = f"{LONGEST_KEPT_DAYS} days after each event"
        notes = f"Kafka's topic {plan.notification_topic}, with keys of rows that are read again"
        offsets = "Kafka's topic of the connector's offsets, with keys of rows that are read again"
        places = [
            (f"Kafka's topic {table.topic}", kept),
            (notes, kept),
            (offsets, "Kafka compacts it, at no fixed time"),
            *places,
        ]
    if table.delivery == "firehose":
        until = f"a run of apply_changes in {lateness_minutes(plan, table)} minutes or later"
        places.append(("Firehose's buffers and repeated appends", until))
    return [{"where": where, "until": until} for where, until in places]


def stored_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of `stored` and `remaining` of a report."""
    yield ""
    yield f"stored in {len(report['stored'])} places" if report["stored"] else "stored nowhere"
    for place in report["stored"]:
        yield f"  {place['where']}: {place['part']} ({', '.join(place['columns'])})"
    yield "not searched"
    for place in report["remaining"]:
        yield f"  {place['where']}, until: {place['until']}"
