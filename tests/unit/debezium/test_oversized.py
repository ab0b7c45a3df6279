"""The marker of an event that is too large for Kafka is never a row, and keeps its place."""

import json
import re

import pytest

from cdclake.debezium import topics, worker
from cdclake.debezium.changelog_rows import LogRows, Place, read_event
from cdclake.debezium.connector import SourceAddress, connector_config
from cdclake.debezium.oversized import Marker
from cdclake.debezium.position import Position
from cdclake.debezium.record_limit import MAX_EVENT_BYTES, MAX_RECORD_BYTES
from cdclake.debezium.refusals import OVERSIZED_RECORD, RefusedEvent
from cdclake.local.components import kafka
from cdclake.local.process.home import Home
from cdclake.plan import Column, Plan, Table
from tests.source_tree import PROJECT

REASON = f"{OVERSIZED_RECORD}: public.t, key id=7, LSN 200: 20 bytes exceed Kafka's limit of 10"
ADDRESS = SourceAddress(
    host="h", port=5432, database="d", user="u", password="${p}", sslmode="prefer"
)
JAVA = PROJECT / "java/main/cdclake/connect"


def marker(op: str = "u") -> bytes:
    """As the connector's transform writes it (java/test, OversizedRecordsTest)."""
    return json.dumps(
        {
            "op": "oversized",
            "source": {
                "schema": "public", "table": "t", "lsn": 200, "sequence": '["100","200"]',
                "txId": 5, "ts_us": 9,
            },
            "cdc_oversized": {
                "op": op, "bytes": 20, "limit_bytes": 10, "key_bytes": 8, "column": "body",
                "reason": REASON, "key": {"id": 7},
            },
            "cdc_epoch": "3",
        }
    ).encode()  # fmt: skip


@pytest.fixture
def plan() -> Plan:
    columns = (Column(source="id", name="id", type="bigint"),)
    table = Table(
        schema="public", table="t", name="t", topic="x.public.t", key=("id",), columns=columns
    )
    return Plan(name="x", source_database="d", lake_database="l", tables=(table,))


def test_firehose_refuses_a_marker_with_the_connectors_reason(plan: Plan) -> None:
    event = read_event(marker())
    assert event is not None
    with pytest.raises(RefusedEvent, match=re.escape(REASON)):
        LogRows(plan.tables[0], plan).row(event, Place(0, 4), 1)


@pytest.mark.parametrize(("op", "phase"), [("u", 1), ("c", 1), ("d", 1), ("r", 0)])
def test_a_marker_has_key_and_position_of_its_event(plan: Plan, op: str, phase: int) -> None:
    at = Position(epoch=3, prev_commit_lsn=100, phase=phase, lsn=200, offset=4)
    assert Marker.parse(marker(op), 4, plan.tables[0]) == Marker(op, str(at), ("7",))


def test_a_marker_of_a_key_that_was_too_large_has_none(plan: Plan) -> None:
    without = marker().replace(b', "key": {"id": 7}', b"")
    assert without != marker()
    assert Marker.parse(without, 4, plan.tables[0]).key is None
    with pytest.raises(RefusedEvent):
        Marker.parse(b'{"op": "c", "source": {}}', 4, plan.tables[0])


def test_the_transform_comes_last_and_leaves_room_for_what_kafka_adds(plan: Plan) -> None:
    config = connector_config(plan, ADDRESS, epoch=1, mask_salt="", max_queue_bytes=1)
    assert config["transforms"].split(",")[-1] == "oversized"
    assert config["transforms.oversized.type"] == "cdclake.connect.OversizedRecords"
    assert (JAVA / "OversizedRecords.java").exists()
    assert config["transforms.oversized.max.record.bytes"] == str(MAX_EVENT_BYTES)
    assert MAX_RECORD_BYTES * 0.99 < MAX_EVENT_BYTES < MAX_RECORD_BYTES - 16 * 1024


def test_broker_topics_and_producer_take_the_same_record(tmp_path) -> None:
    limit = str(MAX_RECORD_BYTES)
    settings = kafka._settings(Home(tmp_path), 1, 2)
    assert str(settings["message.max.bytes"]) == str(settings["replica.fetch.max.bytes"]) == limit
    assert topics.TOPIC_SETTINGS["max.message.bytes"] == limit
    assert worker.worker_settings("p")["producer.max.request.size"] == limit


def test_java_and_python_call_the_marker_the_same() -> None:
    java = (JAVA / "OversizedMarker.java").read_text()
    named = dict(re.findall(r'String (\w+) = "([\w ]+)"', java))
    assert (named["FACTS"], named["EPOCH"]) == ("cdc_oversized", "cdc_epoch")
    assert f'return "{OVERSIZED_RECORD}: "' in java
