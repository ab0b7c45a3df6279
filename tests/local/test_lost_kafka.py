"""Kafka loses records, topics or everything: what stops, and the commands that repair it."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from cdclake.debezium.topics import PARTITIONS, TOPIC_SETTINGS
from tests.local.running import SHOP, RunningLake, ShopWriter, shop_lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(1500)]

TABLES = ("customers", "orders", "order_items")
KEYS = {
    "customers": ["customer_id"],
    "orders": ["order_id"],
    "order_items": ["order_id", "line_no"],
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    with shop_lake_in(tmp_path_factory.mktemp("lake")) as running:
        running.assert_equal()
        yield running


def kafka_of(lake: RunningLake) -> dict[str, Any]:
    return lake.endpoints.kafka.settings


def ends(lake: RunningLake, table: str) -> list[TopicPartition]:
    """The end offsets of the table's topic."""
    topic = f"shop.public.{table}"
    consumer = Consumer({**kafka_of(lake), "group.id": "test"})
    try:
        found = consumer.list_topics(topic, timeout=20).topics[topic]
        places = [TopicPartition(topic, partition) for partition in found.partitions]
        return [
            TopicPartition(topic, place.partition, consumer.get_watermark_offsets(place)[1])
            for place in places
        ]
    finally:
        consumer.close()


def count_in_kafka(lake: RunningLake, table: str) -> int:
    return sum(place.offset for place in ends(lake, table))


def create_again(lake: RunningLake, table: str) -> None:
    admin, topic = AdminClient(kafka_of(lake)), f"shop.public.{table}"
    admin.delete_topics([topic])[topic].result(20)
    lake.eventually(lambda: topic not in admin.list_topics(timeout=20).topics)
    new = NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1, config=TOPIC_SETTINGS)
    admin.create_topics([new])[topic].result(20)


def change(lake: RunningLake, seed: int, transactions: int = 20) -> None:
    with lake.connect() as connection:
        ShopWriter(connection, seed).change(transactions)


def touch_customers(lake: RunningLake, times: int) -> None:
    """Update every customer, in `times` transactions, and wait until the events are in Kafka."""
    before = count_in_kafka(lake, "customers")
    with lake.connect() as connection:
        [rows] = connection.execute("select count(*) from customers").fetchone() or [0]
        for _ in range(times):
            connection.execute("update customers set phone = coalesce(phone, '') || '1'")
    lake.eventually(lambda: count_in_kafka(lake, "customers") >= before + rows * times, 120)


def table_status(lake: RunningLake, table: str) -> dict[str, Any]:
    found = lake.run("status", expect=None)["tables"]
    return next(each for each in found if each["table"] == table)


def await_stopped(lake: RunningLake, table: str) -> str:
    lake.eventually(lambda: table_status(lake, table)["state"] == "stopped", 120)
    return str(table_status(lake, table)["last_error"])


def assert_all_equal(lake: RunningLake) -> None:
    lake.assert_equal()
    for table, key in KEYS.items():
        lake.assert_each_identity_once(table, *key)
        assert table_status(lake, table)["last_error"] is None


def test_a_topic_that_was_created_again_stops_its_table(lake: RunningLake) -> None:
    """The new topic has grown past the offset at which the stream continues."""
    lake.run("pause")
    before = count_in_kafka(lake, "customers")
    with lake.connect() as connection:
        connection.execute("delete from customers where customer_id between 11 and 20")
    lake.eventually(lambda: count_in_kafka(lake, "customers") >= before + 10)
    create_again(lake, "customers")
    touch_customers(lake, times=3)
    lake.run("resume")
    assert "was deleted and created again" in await_stopped(lake, "customers")
    lake.assert_equal("--table", "orders")
    lake.run("resume")  # does not help: the lost events are not in the new topic
    assert "cdclake resync customers" in await_stopped(lake, "customers")
    lake.run("resync", "customers")
    assert_all_equal(lake)


def test_a_topic_that_ends_before_the_checkpoint_does_not_stop_the_others(
    lake: RunningLake,
) -> None:
    """Spark refuses the checkpoint at every start."""
    lake.run("pause")
    change(lake, seed=1)
    create_again(lake, "order_items")
    change(lake, seed=2)
    lake.run("resume")
    assert "was deleted and created again" in await_stopped(lake, "order_items")
    lake.assert_equal("--table", "customers")
    done = lake.run("resync", "--expired")
    assert [line["table"] for line in done["tables"]] == ["order_items"]
    assert_all_equal(lake)
    assert lake.run("resync", "--expired")["tables"] == []


def test_records_that_expired_before_they_were_read(lake: RunningLake) -> None:
    """The steps of docs/runbooks/keeper-gave-up.md, on the local lake."""
    lake.run("pause")
    change(lake, seed=3, transactions=40)
    touch_customers(lake, times=1)
    admin = AdminClient(kafka_of(lake))
    for table in ("customers", "orders"):
        for deleted in admin.delete_records(ends(lake, table)).values():
            deleted.result(20)
    change(lake, seed=4)
    lake.run("resume")
    assert "expired from Kafka" in await_stopped(lake, "customers")
    assert "expired from Kafka" in await_stopped(lake, "orders")
    assert table_status(lake, "order_items")["state"] == "streaming"
    done = lake.run("resync", "--expired")
    assert [line["table"] for line in done["tables"]] == ["customers", "orders"]
    assert_all_equal(lake)


@pytest.mark.parametrize(("seed", "folder"), [(8, "offsets"), (9, "commits")])
def test_a_damaged_checkpoint_is_read_again_from_kafka(
    lake: RunningLake, seed: int, folder: str
) -> None:
    lake.run("pause")
    change(lake, seed)
    files = Path(lake.home / "data" / "checkpoints" / "shop" / folder)
    newest = max((f for f in files.iterdir() if f.name.isdecimal()), key=lambda f: int(f.name))
    newest.write_text(newest.read_text()[:3] if folder == "offsets" else "")
    (files / f".{newest.name}.crc").unlink(missing_ok=True)
    lake.run("resume")
    assert_all_equal(lake)
    [log] = [p["log"] for p in lake.run("status")["components"] if p["name"] == "stream"]
    assert f"its file {folder}/{newest.name} is damaged" in Path(log).read_text(errors="replace")


def test_a_kafka_that_lost_everything(lake: RunningLake) -> None:
    """`up` accepts no progress of the earlier Kafka, and begins a new epoch."""
    epoch = lake.run("status")["epoch"]
    lake.kill("kafka")
    shutil.rmtree(lake.home / "data" / "kafka")
    with lake.connect() as connection:
        connection.execute("delete from customers where customer_id between 101 and 120")
    change(lake, seed=6)
    lake.run("up", str(SHOP))
    assert lake.run("status")["epoch"] == epoch + 1
    assert_all_equal(lake)
    change(lake, seed=7)
    assert_all_equal(lake)
    lake.run("resync", "orders")
    assert_all_equal(lake)
