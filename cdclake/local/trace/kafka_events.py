"""The row's records in Kafka."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping

from cdclake import naming
from cdclake.activity import Advance, Step, step
from cdclake.debezium.changelog_rows import Place
from cdclake.debezium.event_parts import table_of
from cdclake.debezium.stream_rows import StreamRow, StreamRows
from cdclake.jobs.stream.avro_values import AvroValues
from cdclake.jobs.stream.schema_registry import registry_of
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.topic_records import TopicRecord, read_records, records_at, retained
from cdclake.trace.row_key import RowKey
from cdclake.trace.trace_facts import MAX_EVENTS, TracedEvent

Searched = dict[int, tuple[int, int, int]]
_MAX_SEARCHED = 1_000_000  # records of a partition that the lake has not read, newest first
_ALWAYS_SEARCHED = 20_000  # newest records of a partition, for copies of what the lake has
_NOTED_EVERY = 1_000  # records
_MAX_FETCHED = 20  # older events of the row whose record is read by its offset


def kafka_events(
    lake: LocalLake,
    key: RowKey,
    known: Collection[TracedEvent],
    arrived: Mapping[int, int],
) -> tuple[list[TracedEvent], Searched]:
    """Return the row's records, and by partition what is retained and was searched.

    What the lake has processed, before the offsets `arrived`, it also knows: of that, only the
    newest part is searched, and the records of `known` events are read by their offsets.
    """
    topic = key.table.topic
    bounds = retained(lake.kafka, topic) or {}
    searched = {p: (low, _first(low, end, arrived.get(p)), end) for p, (low, end) in bounds.items()}
    ranges = {p: (first, end) for p, (_, first, end) in searched.items()}
    # A topic may have been created again: its offsets are then those of other rows.
    older = [
        record
        for record in records_at(lake.kafka, topic, _older(known, searched))
        if key.matches(record.key, None)
    ]
    with step("search the records in Kafka") as shown:
        records = read_records(lake.kafka, topic, ranges)
        total = sum(max(end - first, 0) for first, end in ranges.values())
        found = (r for r in _counted(records, shown, total) if key.matches(r.key, None))
        newest = deque(found, maxlen=MAX_EVENTS)
    return list(_events(lake, key, (*older, *newest))), searched


def _counted(records: Iterable[TopicRecord], shown: Step, total: int) -> Iterator[TopicRecord]:
    """Yield the records, and note how many of the total have been read."""
    for number, record in enumerate(records):
        if number % _NOTED_EVERY == 0:
            shown.note(Advance(done=number, total=total, unit="records"))
        yield record


def _first(low: int, end: int, arrived: int | None) -> int:
    """Return the first offset to search; everything is unread if `arrived` is unknown."""
    unread = low if arrived is None else min(arrived, end - _ALWAYS_SEARCHED)
    return max(low, end - _MAX_SEARCHED, unread)


def _older(known: Collection[TracedEvent], searched: Searched) -> list[tuple[int, int]]:
    """Return the places of the newest events that Kafka has before the searched offsets."""
    places = [
        (event.partition, event.offset)
        for event in known
        if event.partition is not None and event.offset is not None
    ]
    outside = {(p, o) for p, o in places if p in searched and searched[p][0] <= o < searched[p][1]}
    return sorted(outside, key=lambda place: place[1])[-_MAX_FETCHED:]


def _events(lake: LocalLake, key: RowKey, records: Iterable[TopicRecord]) -> Iterator[TracedEvent]:
    """Yield an event per record; tombstones of deletes have none."""
    rows = StreamRows(key.table, lake.plan)
    # The tables of a domain share a topic, and may have rows with equal keys.
    others = [t for t in lake.plan.tables if t.topic == key.table.topic and t != key.table]
    avro = AvroValues(registry_of(lake.plan)) if lake.plan.format == "avro" else None
    for record in records:
        [value] = [record.value] if avro is None else avro.as_json([record.value])
        if table_of(value, [key.table, *others]) != key.table:
            continue
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
