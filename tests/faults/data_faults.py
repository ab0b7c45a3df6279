"""Faults that come as data: repeated and reordered records, poison, DDL, large transactions."""

from __future__ import annotations

import time
from collections.abc import Sequence

import psycopg
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from cdclake import naming
from cdclake.local.components.kafka import Broker
from tests.faults.fault import Fault, FaultyLake
from tests.model_lake.shapes import PIPELINE

_COPIED = 300
_LONGEST_ALTER_S = 120.0


def _records(kafka: Broker, topic: str) -> list[Message]:
    """Read the newest records of a topic's first partition."""
    consumer = Consumer({**kafka.settings, "group.id": "faults"})
    try:
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
        start = max(first, end - _COPIED)
        consumer.assign([TopicPartition(topic, 0, start)])
        found: list[Message] = []
        while len(found) < end - start:
            found += consumer.consume(end - start - len(found), timeout=5)
        return found
    finally:
        consumer.close()


def _produce(
    kafka: Broker, topic: str, records: Sequence[tuple[bytes | None, bytes | None]]
) -> None:
    producer = Producer(kafka.settings)
    for key, value in records:
        producer.produce(topic, value, key, partition=0)
    assert producer.flush(30) == 0


def _topic(table: str) -> str:
    return naming.topic_name(PIPELINE, "public", table)


def _delivered_twice(lake: FaultyLake) -> None:
    for table in ("accounts", "devices", "ledgers"):
        records = _records(lake.lake.endpoints.kafka, _topic(table))
        _produce(lake.lake.endpoints.kafka, _topic(table), [(r.key(), r.value()) for r in records])


def _delivered_out_of_order(lake: FaultyLake) -> None:
    for table in ("accounts", "devices", "ledgers"):
        records = _records(lake.lake.endpoints.kafka, _topic(table))
        lake.random.shuffle(records)
        _produce(lake.lake.endpoints.kafka, _topic(table), [(r.key(), r.value()) for r in records])


def _keys_change(lake: FaultyLake) -> None:
    first = lake.random.randrange(10**12, 10**13, 10**6)
    lake.execute(
        f"INSERT INTO accounts SELECT {first} + n, n, 'x', repeat('body ' || n, 900), NULL, NULL "
        "FROM generate_series(0, 99) n",
        *(
            f"UPDATE accounts SET id = id + 1000 WHERE id BETWEEN {first} AND {first + 999999}"
            for _ in range(9)
        ),
    )


def _large_values_stay(lake: FaultyLake) -> None:
    first = lake.random.randrange(10**12, 10**13, 10**6)
    rows = f"id BETWEEN {first} AND {first + 99}"
    lake.execute(
        f"INSERT INTO accounts SELECT {first} + n, n, 'x', repeat('body ' || n, 900), NULL, NULL "
        "FROM generate_series(0, 99) n",
        *(f"UPDATE accounts SET v = v + 1 WHERE {rows}" for _ in range(20)),
    )


def _deleted_and_inserted(lake: FaultyLake) -> None:
    first = lake.random.randrange(10**12, 10**13, 10**6)
    rows = f"id BETWEEN {first} AND {first + 49}"
    insert = f"INSERT INTO members SELECT {first} + n, n FROM generate_series(0, 49) n"
    for _ in range(10):
        lake.execute(insert, f"DELETE FROM members WHERE {rows}")
    lake.execute(insert)


def _truncated(lake: FaultyLake) -> None:
    for number in range(5):
        lake.execute(
            "TRUNCATE emptied",
            f"INSERT INTO emptied SELECT {10**12} + n, {number} FROM generate_series(0, 20) n",
        )


def _poisoned(lake: FaultyLake) -> None:
    poison: list[tuple[bytes | None, bytes | None]] = [
        (b'{"id": 1}', b"{rubbish"),
        (b'{"id": 1}', b"\xff\xfe"),
        (b'{"id": 1}', b'{"op": "x"}'),
        (b"not json", b'{"op": "c"}'),
    ]
    _produce(lake.lake.endpoints.kafka, _topic("accounts"), poison)
    lake.quarantined += len(poison)


def _large_transaction(lake: FaultyLake) -> None:
    first = lake.random.randrange(10**12, 10**13, 10**6)
    lake.execute(
        f"INSERT INTO accounts SELECT {first} + n, n, 'one of many' "
        "FROM generate_series(1, 100000) n"
    )


def _idle_tables(lake: FaultyLake) -> None:
    """Write WAL that no captured table is in; the slot must follow."""
    lake.execute("CREATE TABLE IF NOT EXISTS noise (n bigint)")
    for _ in range(5):
        lake.execute("INSERT INTO noise SELECT generate_series(1, 100000)")
        lake.pause_s(2, 4)

    def follows() -> bool:
        with lake.lake.connect() as connection:
            row = connection.execute(
                "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn) "
                "FROM pg_replication_slots WHERE slot_name LIKE 'cdclake%'"
            ).fetchone()
        return row is not None and row[0] < 4_000_000

    lake.lake.eventually(follows, seconds=120)


def _columns_change(lake: FaultyLake) -> None:
    """Add and drop columns that the file does not declare, under load."""
    for number in range(3):
        _alter(lake, f"ALTER TABLE accounts ADD extra{number} text DEFAULT 'x'")
        lake.pause_s(2, 4)
        _alter(lake, f"ALTER TABLE accounts DROP extra{number}")


def _alter(lake: FaultyLake, statement: str) -> None:
    """Alter a table as a migration should: without waiting for its lock in front of the writers.

    A writer's session may wait for another session of the same writer, which would then never end.
    """
    deadline = time.monotonic() + _LONGEST_ALTER_S
    while True:
        try:
            lake.execute("SET lock_timeout = '200ms'", statement)
        except psycopg.errors.LockNotAvailable:
            assert time.monotonic() < deadline, "the table was never free"
            lake.pause_s(0.05, 0.3)
        else:
            return


def _file_changes(lake: FaultyLake) -> None:
    text = lake.file.read_text()
    for seconds in (3, 2):
        lake.file.write_text(text.replace("trigger_seconds: 2", f"trigger_seconds: {seconds}"))
        lake.heal()
        lake.pause_s(3, 6)
    assert lake.file.read_text() == text


def _password_changes(lake: FaultyLake) -> None:
    """Change the connector's password behind its back and end its sessions; `up` repairs it."""
    lake.execute(
        f"ALTER ROLE cdclake_{PIPELINE} PASSWORD 'changed-behind-its-back'",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE usename = 'cdclake_{PIPELINE}'",
    )
    lake.pause_s(10, 15)
    lake.heal()


DATA_FAULTS = (
    Fault(id="F15", group="data", title="idle tables while WAL grows", inject=_idle_tables),
    Fault(id="F16", group="data", title="records delivered twice", inject=_delivered_twice),
    Fault(
        id="F17",
        group="data",
        title="records delivered again in random order",
        inject=_delivered_out_of_order,
    ),
    Fault(id="F18", group="data", title="keys changed, many times", inject=_keys_change),
    Fault(id="F19", group="data", title="large values left unchanged", inject=_large_values_stay),
    Fault(
        id="F20",
        group="data",
        title="keys deleted and inserted again",
        inject=_deleted_and_inserted,
    ),
    Fault(id="F21", group="data", title="a table truncated", inject=_truncated),
    Fault(
        id="F34", group="data", title="undeclared columns added and dropped", inject=_columns_change
    ),
    Fault(
        id="F38", group="data", title="the connector's password changed", inject=_password_changes
    ),
    Fault(id="F39", group="data", title="a transaction of 100,000 rows", inject=_large_transaction),
    Fault(
        id="F40",
        group="data",
        title="the pipeline file changed while streaming",
        inject=_file_changes,
    ),
    Fault(id="F32", group="data", title="poison records", inject=_poisoned),
)
