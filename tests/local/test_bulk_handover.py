"""A bulk load as on AWS: the job writes the position at which a later connector begins."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from cdclake import naming
from cdclake.debezium.connect_offset import UNFINISHED, offset_value
from cdclake.local.components.connect import OFFSETS_TOPIC
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.lake import LocalLake, open_lake
from cdclake.local.process.home import Home
from tests.local.deployed_runs import arguments_of, order, started
from tests.local.running import Business, RunningLake, shop_lake_in
from tests.local.test_bulk import MORE_ORDERS, assert_each_identity_once, load_log, loader
from tests.local.test_connector_again import NAME, connect
from tests.recorded.recording import FOLDER

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

RECORDED = json.loads((FOLDER / "connect_offset.json").read_text())
DROP_SLOT = """SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
    WHERE slot_name = 'cdclake_shop'"""


def newest_record(lake: LocalLake) -> tuple[str, str]:
    """Key and value of the topic's newest record; the connector is the only one that has any."""
    consumer = Consumer({**lake.kafka.settings, "group.id": "test"})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(OFFSETS_TOPIC, 0), timeout=20)
        consumer.assign([TopicPartition(OFFSETS_TOPIC, 0, end - 1)])
        message = consumer.poll(20)
        assert message is not None and message.error() is None
        key, value = message.key(), message.value()
        assert key is not None and value is not None
        return key.decode(), value.decode()
    finally:
        consumer.close()


def load(lake: LocalLake, epoch: int) -> dict[str, str]:
    """The arguments of the deployment's job."""
    return arguments_of(lake, naming.LOAD_JOB) | {"--epoch": str(epoch), "--run": f"epoch-{epoch}"}


def report(lake: LocalLake, epoch: int) -> dict[str, Any]:
    """What the newest load of this epoch has reported."""
    stored = lake.control.read(naming.report_name(f"epoch-{epoch}"))
    assert stored is not None
    return dict(stored.content)


def refusal(lake: LocalLake, epoch: int) -> str:
    """Why a load does not begin."""
    assert started(lake, naming.LOAD_JOB, load(lake, epoch)).process.wait(120) == 1
    return str(report(lake, epoch)["error"]["message"])


def kill_between_two_tables(running: RunningLake, lake: LocalLake, epoch: int) -> None:
    """Begin a load, and end it when the first table is complete."""
    job = started(lake, naming.LOAD_JOB, load(lake, epoch))
    running.eventually(lambda: " Loaded(" in load_log(running), seconds=300)
    for pid in loader(running):
        os.kill(pid, 9)
    assert job.process.wait(60) != 0
    assert "orders: Loaded(" not in load_log(running)


def assert_nothing_continues_a_killed_load(
    running: RunningLake, lake: LocalLake, config: dict[str, str]
) -> None:
    """Kill a load of epoch 2: neither a connector nor another load of that epoch begins."""
    connector = ConnectorClient(lake.endpoints.connect, lake.plan)
    kill_between_two_tables(running, lake, 2)
    assert newest_record(lake) == (RECORDED["key"], UNFINISHED)
    connector.set_config(of_epoch(config, 2))
    running.eventually(lambda: "ClassCast" in str(connector.failure()), seconds=60)
    connector.remove()
    assert "has rows of epoch 2" in refusal(lake, 2)


def test_a_connector_goes_on_where_a_load_under_writes_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    with shop_lake_in(tmp_path) as running:
        lake = open_lake(Home(running.home))
        connector = ConnectorClient(lake.endpoints.connect, lake.plan)
        config = connect(running, "GET", f"/connectors/{NAME}/config")
        running.run("pause")
        order(lake, None)
        connector.begin_at(config, RECORDED["lsn"])
        assert newest_record(lake) == (RECORDED["key"], RECORDED["value"])
        connector.remove()
        assert "its slot is intact" in refusal(lake, 2)
        with running.connect() as connection:
            connection.execute(DROP_SLOT)
            connection.execute(MORE_ORDERS)

        with Business(running, seed=5, pause_s=0.02):
            assert_nothing_continues_a_killed_load(running, lake, config)
            with running.connect() as connection:
                connection.execute("delete from orders where order_id between 100001 and 100500")
            job = started(lake, naming.LOAD_JOB, load(lake, 3))
            assert job.process.wait(400) == 0, load_log(running)[-3000:]
        assert report(lake, 3)["ok"]
        begins = lake.control.read(naming.load_start(3))
        assert begins is not None
        assert newest_record(lake) == (RECORDED["key"], offset_value(begins.content["lsn"]))

        with Business(running, seed=6, pause_s=0.02):
            connector.set_config(of_epoch(config, 3))
            running.run("resume")
        tables = running.assert_equal()
        assert tables["orders"]["source_rows"] > 200_000
        read = "select distinct cdc_partition from orders_changes where cdc_op = 'r'"
        assert running.sql(f"{read} and cdc_epoch = 3") == [[-2]]
        assert_each_identity_once(running)
        assert connector.failure() is None


def of_epoch(config: dict[str, str], epoch: int) -> dict[str, str]:
    """The connector's settings after a deployment with this epoch."""
    return {**config, "transforms.epoch.static.value": str(epoch)}
