"""The row's records in Kafka."""

from __future__ import annotations

from collections.abc import Iterator

from cdclake import naming
from cdclake.debezium.changelog_rows import Place
from cdclake.debezium.stream_rows import StreamRow, StreamRows
from cdclake.jobs.stream.avro_values import AvroValues
from cdclake.jobs.stream.schema_registry import registry_of
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.topic_records import TopicRecord, read_records, retained
from cdclake.local.trace.row_key import RowKey
from cdclake.trace.trace_facts import TracedEvent

Searched = dict[int, tuple[int, int, int]]
_MAX_SEARCHED = 1_000_000  # records of a partition, newest first


def kafka_events(lake: LocalLake, key: RowKey) -> tuple[list[TracedEvent], Searched]:
    """Return the row's records, and by partition what is retained and was searched."""
    topic = key.table.topic
    bounds = retained(lake.kafka, topic) or {}
    searched = {p: (low, max(low, end - _MAX_SEARCHED), end) for p, (low, end) in bounds.items()}
    ranges = {p: (first, end) for p, (_, first, end) in searched.items()}
    records = (r for r in read_records(lake.kafka, topic, ranges) if key.matches(r.key, None))
    return list(_events(lake, key, records)), searched


def _events(lake: LocalLake, key: RowKey, records: Iterator[TopicRecord]) -> Iterator[TracedEvent]:
    """Yield an event per record; tombstones of deletes have none."""
    rows = StreamRows(key.table, lake.plan)
    avro = AvroValues(registry_of(lake.plan)) if lake.plan.format == "avro" else None
    for record in records:
        [value] = [record.value] if avro is None else avro.as_json([record.value])
        decoded = rows.row(record.key, value, Place(record.partition, record.offset))
        if decoded is not None:
            yield _event(key.table.topic, record, decoded)


def _event(topic: str, record: TopicRecord, decoded: StreamRow) -> TracedEvent:
    row = decoded.values
    return TracedEvent(
        op=row[naming.OP],
        position=row[naming.POSITION],
        tx_id=row[naming.TX_ID],
        committed_us=row[naming.COMMITTED_AT],
        topic=topic,
        partition=record.partition,
        offset=record.offset,
        kafka_ms=record.written_ms,
        unsent=tuple(row[naming.UNAVAILABLE] or ()),
    )
