"""Recorded Kafka records as Firehose hands them to its function, and as it delivers them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from cdclake.debezium.changelog_rows import LogRows, Place, read_event
from cdclake.debezium.refusals import RefusedEvent
from cdclake.firehose.record_transform import RecordTransform
from cdclake.firehose.stream import DeliveryStream
from cdclake.iceberg.schemas import TableSchema, changes_schema
from cdclake.local.firehose import records as firehose
from cdclake.local.firehose.delivery import Delivery
from cdclake.local.firehose.failures import Kind
from cdclake.local.firehose.fault_injection import NO_FAULTS, FaultInjector
from cdclake.local.firehose.function import LocalFunction
from cdclake.local.firehose.records import Failure
from cdclake.plan import Plan, Table
from tests.recorded.recording import Record

INGESTED_AT = 1_790_000_000_000_000
_SETTINGS: Mapping[str, Any] = {
    "buffer_seconds": 0, "buffer_mib": 64, "function_seconds": 0, "function_mib": 1,
    "function_retries": 3, "retry_seconds": 300,
    "error_prefix": "firehose", "mib_per_second": 1,
}  # fmt: skip
_HEADER = StructType(
    NestedField(1001, "key", StringType()), NestedField(1002, "value", BinaryType())
)
_KINDS: Mapping[str, IcebergType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "string": StringType(),
    "timestamp": TimestamptzType(),
    "binary": BinaryType(),
    "array<string>": ListType(1000, StringType(), element_required=False),
    "array<struct<key:string,value:binary>>": ListType(1000, _HEADER, element_required=False),
}


def delivered(plan: Plan) -> Plan:
    """The same plan, its tables delivered by Firehose."""
    return replace(plan, tables=tuple(replace(t, delivery="firehose") for t in plan.tables))


def handed_over(records: Iterable[Record]) -> dict[str, Any]:
    """The event that calls the function with these records, as AWS documents it."""
    named = {"name": "sales", "topic": "shop.sales", "tables": (), "routed": True}
    stream = DeliveryStream(**{**named, **_SETTINGS})
    return firehose.invocation(stream, map(read_by_firehose, records))


def read_by_firehose(record: Record) -> firehose.Record:
    """The record without its key and headers."""
    return firehose.Record(record.partition, record.offset, 1_790_000_000_000, record.value)


def rows_of(records: Sequence[Record], table: Table, plan: Plan) -> dict[int, dict[str, Any] | str]:
    """By offset the row of each event, or why it can be none; tombstones have neither."""
    rows, found = LogRows(table, plan), dict[int, dict[str, Any] | str]()
    for record in records:
        try:
            event = read_event(record.value) if record.value else None
            if event is not None:
                place = Place(record.partition, record.offset)
                found[record.offset] = rows.row(event, place, INGESTED_AT)
        except RefusedEvent as refused:
            found[record.offset] = str(refused)
    return found


def made_rows(records: Sequence[Record], table: Table, plan: Plan) -> dict[int, dict[str, Any]]:
    """By offset the row of each event that can be one."""
    found = rows_of(records, table, plan)
    return {offset: row for offset, row in found.items() if isinstance(row, dict)}


def iceberg_schema(declared: TableSchema) -> Schema:
    """The table's columns as Iceberg has them."""
    fields = [
        NestedField(number, name, _KINDS[kind], required=False)
        for number, (name, kind) in enumerate(declared.columns, 1)
    ]
    return Schema(*fields)


def stream_of(table: Table, **settings: Any) -> DeliveryStream:
    """A stream of the table alone, which waits for nothing, with these settings."""
    named = {"name": table.name, "topic": table.topic, "tables": (table.name,), "routed": False}
    return DeliveryStream(**{**named, **_SETTINGS, **settings})


@dataclass
class RecordedTopic:
    """A topic's records, a few at a time, from a place that is committed."""

    records: Sequence[firehose.Record]
    at_once: int = 10
    read_until: int = 0
    committed: dict[int, int] = field(default_factory=dict)
    dropped: int = 0

    def read(self, most: int) -> Sequence[firehose.Record]:
        found = self.records[self.read_until : self.read_until + min(most, self.at_once)]
        self.read_until += len(found)
        return found

    def commit(self, offsets: Mapping[int, int], dropped: int = 0) -> None:
        assert all(offset >= self.committed.get(p, 0) for p, offset in offsets.items())
        self.committed |= offsets
        self.dropped += dropped


@dataclass
class Logs:
    """Logs in memory: the rows of each commit, and its table."""

    plan: Plan
    commits: list[tuple[str, list[Mapping[str, Any]]]] = field(default_factory=list)

    def schema(self, table: str) -> Schema:
        [wanted] = [t for t in self.plan.tables if t.changes == table]
        return iceberg_schema(changes_schema(wanted, self.plan))

    def append(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self.commits.append((table, list(rows)))


@dataclass
class Kept:
    """An error prefix in memory."""

    failures: list[tuple[Kind, Failure]] = field(default_factory=list)

    def write(self, kind: Kind, failures: Sequence[Failure]) -> None:
        self.failures += [(kind, failure) for failure in failures]


@dataclass
class Delivered:
    """What became of a topic's records."""

    topic: RecordedTopic
    logs: Logs
    kept: Kept

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """All rows, in the order of their commits."""
        return [row for _, rows in self.logs.commits for row in rows]


def deliver(
    records: Sequence[Record],
    table: Table,
    plan: Plan,
    faults: FaultInjector = NO_FAULTS,
    *,
    at_once: int = 10,
) -> Delivered:
    """Have the emulator deliver a topic's records, by the real function and in memory."""
    topic = RecordedTopic([read_by_firehose(record) for record in records], at_once)
    done = Delivered(topic, Logs(plan), Kept())
    stream = stream_of(table)
    delivery = Delivery(
        stream,
        plan.lake_database,
        source=topic,
        function=LocalFunction(handler_of(plan), stream, faults=faults),
        tables=done.logs,
        errors=done.kept,
        faults=faults,
        pause=lambda _: None,
    )
    while topic.read_until < len(topic.records):
        delivery.turn()
    delivery.drain()
    return done


def handler_of(plan: Plan) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """The real function for a plan; each call is ingested a second after the one before."""
    transform = RecordTransform(plan, dict)
    moments = itertools.count(INGESTED_AT, 1_000_000)

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"records": transform.answer(event["records"], next(moments))}

    return handler
