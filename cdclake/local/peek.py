"""Events of a topic of the local lake, decoded for a reader."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from cdclake import naming
from cdclake.debezium.changelog_rows import Place
from cdclake.debezium.stream_rows import StreamRows
from cdclake.errors import InputError
from cdclake.jobs.stream.avro_values import AvroValues
from cdclake.jobs.stream.schema_registry import registry_of
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.topic_records import TopicRecord, read_records, retained, topic_names


def peek_topic(
    lake: LocalLake, name: str, *, last: int, offset: int | None, partition: int
) -> dict[str, Any]:
    """Return the last events of a partition, or those from `offset` on; `last` is their number.

    `name` is a topic, or a table. Values are shown as they are in Kafka: masks are not lifted, and
    a value of Avro is that which the JSON converter would have written.
    """
    if not lake.plan.tables:
        raise InputError(
            "this lake has no Kafka: its pipeline reads no table's log",
            "query its tables with `cdclake sql`",
        )
    topic = _topic(lake, name)
    low, end = _bounds(lake, topic, partition)
    first = max(low, end - last) if offset is None else offset
    if offset is not None and not low <= offset <= end:
        raise InputError(
            f"partition {partition} of {topic!r} has the offsets {low} to {end}, not {offset}",
            "choose an offset between them, or use --last N",
        )
    records = read_records(lake.kafka, topic, {partition: (first, min(end, first + last))})
    return {
        "ok": True,
        "topic": topic,
        "partition": partition,
        "retained_from": low,
        "end": end,
        "events": list(_events(lake, topic, list(records))),
    }


def _topic(lake: LocalLake, name: str) -> str:
    """Return the topic of a table, or the topic with this name; InputError without such a one."""
    for table in lake.plan.tables:
        if name in (table.name, table.source):
            return table.topic
    if name not in (names := topic_names(lake.kafka)):
        raise InputError(f"Kafka has no topic {name!r}", f"choose one of {', '.join(names)}")
    return name


def _bounds(lake: LocalLake, topic: str, partition: int) -> tuple[int, int]:
    found = retained(lake.kafka, topic) or {}
    if partition not in found:
        raise InputError(
            f"{topic!r} has no partition {partition}",
            f"choose one of {', '.join(map(str, sorted(found)))}",
        )
    return found[partition]


def _events(
    lake: LocalLake, topic: str, records: Sequence[TopicRecord]
) -> Iterator[dict[str, Any]]:
    table = next((table for table in lake.plan.tables if table.topic == topic), None)
    values = [record.value for record in records]
    if table is not None and lake.plan.format == "avro":
        values = AvroValues(registry_of(lake.plan)).as_json(values)
    rows = None if table is None else StreamRows(table, lake.plan)
    for record, value in zip(records, values, strict=True):
        place = Place(record.partition, record.offset)
        decoded = None if rows is None else rows.row(record.key, value, place)
        yield {
            "offset": record.offset,
            "at": datetime.fromtimestamp(record.written_ms / 1000, UTC).isoformat(
                timespec="milliseconds"
            ),
            "key": _shown(record.key),
            "operation": None if decoded is None else naming.OPERATIONS.get(_op(decoded.values)),
            "position": None if decoded is None else decoded.values[naming.POSITION],
            "refused": None if decoded is None else decoded.refusal,
            "value": _shown(value),
        }


def _op(row: dict[str, Any]) -> str:
    return row[naming.OP] or ""


def _shown(data: bytes | None) -> Any:
    """Return JSON parsed, with the digits of its numbers, and other bytes as base64."""
    if data is None:
        return None
    try:
        return json.loads(data, parse_float=str, parse_constant=str)
    except ValueError:
        return {"base64": base64.b64encode(data).decode()}


def peek_lines(answer: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that show the events to a reader."""
    yield (
        f"{answer['topic']}, partition {answer['partition']}: offsets {answer['retained_from']} to"
        f" {answer['end']} are in Kafka"
    )
    for event in answer["events"]:
        yield ""
        what = event["operation"] or ("tombstone" if event["value"] is None else "record")
        yield f"{event['offset']}  {event['at']}  {what}  key {json.dumps(event['key'])}"
        if event["position"]:
            yield f"   position {event['position']}"
        if event["refused"]:
            yield f"   refused: {event['refused']}"
        yield from _value_lines(event["value"])


def _value_lines(value: Any) -> Iterator[str]:
    """Yield the parts of an event, one a line; the schema that a converter may add is left out."""
    if not isinstance(value, dict):
        if value is not None:
            yield f"   {json.dumps(value)}"
        return
    for name, part in value.items():
        if part is not None:
            yield f"   {name}: {json.dumps(part, ensure_ascii=False)}"
