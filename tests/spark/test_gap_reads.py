"""Reads of a stopped table's gap from a real Kafka, which gets further records meanwhile."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from benchmarks.broker import RunningBroker, running_broker
from cdclake.jobs.stream import changelog_job
from cdclake.jobs.stream.kafka_range import read_gap
from tests.spark.events import plan_of
from tests.spark.fed_stream import Stream

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Sent = tuple[int, bytes, bytes]  # partition, key, value


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


def send(broker: RunningBroker, topic: str, records: Sequence[Sent], **settings: Any) -> None:
    """Send records in their order; with a `transactional.id` as one transaction."""
    producer = Producer({**broker.broker.settings, **settings})
    if settings:
        producer.init_transactions(30)
        producer.begin_transaction()
    for partition, key, value in records:
        producer.produce(topic, value, key, partition)
    if settings:
        producer.commit_transaction(30)
    assert producer.flush(30) == 0


def test_a_gap_that_grows_while_it_is_decoded_loses_no_event(
    spark: SparkSession, broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large values have a job of their own, which reads the gap a second time."""
    stream = Stream(spark)
    one, options = stream.one, broker.spark_options
    stream.process._brokers = options
    monkeypatch.setattr(changelog_job, "LARGE_VALUE_BYTES", 1000)
    events = [one.event("c", n, n, id=n, v="x" * (n % 2 * 2000)) for n in range(10, 14)]
    records = stream.records(*((one, event) for event in events))
    sent = [(0, record[3], record[4]) for record in records]
    broker.create([one.table.topic])
    send(broker, one.table.topic, sent[:2])
    arrow_rows = changelog_job._arrow_rows

    def growing(spark: SparkSession, rows: int) -> AbstractContextManager[None]:
        send(broker, one.table.topic, sent[2:])
        return arrow_rows(spark, rows)

    stream.run()
    stream.process._progress.table(one.table.name).stop("a cause that is fixed")
    with monkeypatch.context() as patched:
        patched.setattr(changelog_job, "_arrow_rows", growing)
        stream.control.write(f"resume/{one.table.name}.json", {})
        stream.run()
    assert stream.progress().table(one.table.name).offsets == {0: 2}
    stream.run(*records[2:])
    assert [row["cdc_lsn"] for row in one.log()] == [10, 11, 12, 13]
    assert sorted(one.state()) == [10, 11, 12, 13]


def offsets_in(frame: Any) -> list[tuple[int, int]]:
    rows = frame.select("partition", "offset").orderBy("partition", "offset").collect()
    return [(row["partition"], row["offset"]) for row in rows]


def test_each_evaluation_of_a_gap_has_the_same_records(
    spark: SparkSession, broker: RunningBroker
) -> None:
    """Partition 0 ends with the batch, the others where Kafka ends; 3 is empty, 4 has no gap."""
    [table], options = plan_of().tables, broker.spark_options
    broker.create([table.topic], partitions=5)
    records = [(p, b"k", b"v") for p in (0, 0, 0, 1, 1, 2, 4, 4)]
    send(broker, table.topic, records)
    resume = {1: 1, 4: 2}
    gap, ranges = read_gap(spark, options, table, resume, {0: 2, 4: 1})
    wanted = [(0, 0), (0, 1), (1, 1), (2, 0)]
    assert ranges == {0: (0, 2), 1: (1, 2), 2: (0, 1)}
    send(broker, table.topic, [*records, (3, b"k", b"v")])
    assert offsets_in(gap) == wanted

    admin = AdminClient(broker.broker.settings)  # its requests end with it
    for deleted in admin.delete_records([TopicPartition(table.topic, 0, 1)]).values():
        deleted.result(30)
    with pytest.raises(Py4JJavaError, match=r"Cannot fetch (offset 0|records in \[0)"):
        offsets_in(gap)  # not the records after the lost one alone
    assert offsets_in(read_gap(spark, options, table, resume, {})[0])[0] == (0, 1)


def test_a_gap_that_ends_with_a_transaction_marker_ends(
    spark: SparkSession, broker: RunningBroker
) -> None:
    [table], options = plan_of().tables, broker.spark_options
    broker.create([table.topic])
    settings = {"transactional.id": uuid.uuid4().hex}
    send(broker, table.topic, [(0, b"k", b"v")] * 2, **settings)
    gap, ranges = read_gap(spark, options, table, {}, {})
    assert (offsets_in(gap), ranges) == ([(0, 0), (0, 1)], {0: (0, 2)})
    gap, ranges = read_gap(spark, options, table, {0: 2}, {})
    assert (offsets_in(gap), ranges) == ([], {})
    send(broker, table.topic, [(0, b"k", b"v")], **settings)
    gap, ranges = read_gap(spark, options, table, {0: 2}, {})
    assert (offsets_in(gap), ranges) == ([(0, 3)], {0: (3, 4)})
