"""Configuration of the Iceberg sink: routes, control topic, catalog, and what a file may set."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cdclake.connectors.configuration import configure
from cdclake.connectors.declared import (
    ICEBERG_SINK,
    ICEBERG_SINK_CLASS,
    DeclaredConnector,
)
from cdclake.connectors.iceberg_sink import SinkAddress
from cdclake.plan import Column, Plan, Table

AT_AWS = SinkAddress(warehouse="s3://lake", region="eu-west-1", kafka={"sasl.mechanism": "IAM"})


def table(name: str, source: str, topic: str) -> Table:
    column = Column(source="id", name="id", type="bigint")
    return Table(
        schema="public", table=source, name=name, topic=topic, key=("id",), columns=(column,)
    )


ORDERS, LINES = (
    table("orders", "orders", "shop.public.orders"),
    table("order_lines", "Order.Lines+", "shop.public.lines"),
)
SINK = DeclaredConnector(
    name="lake",
    plugin=ICEBERG_SINK,
    connector_class=ICEBERG_SINK_CLASS,
    tables=("orders", "order_lines"),
    settings={"iceberg.control.commit.interval-ms": "5000"},
)
PLAN = Plan(
    name="shop",
    source_database="shop",
    lake_database="cdc_iceberg",
    tables=(ORDERS, LINES),
    connectors=(SINK,),
)


@pytest.fixture
def config() -> dict[str, str]:
    return configure(PLAN, SINK, "shop-lake", AT_AWS)


def test_each_event_goes_to_the_table_of_its_source(config: dict[str, str]) -> None:
    assert config["topics"] == "shop.public.orders,shop.public.lines"
    targets = config["iceberg.tables"].split(",")
    assert targets == ["cdc_iceberg.orders_sink", "cdc_iceberg.order_lines_sink"]
    for source, target in (("public.orders", targets[0]), ("public.Order.Lines+", targets[1])):
        matching = [
            each
            for each in targets
            if re.fullmatch(config[f"iceberg.table.{each}.route-regex"], source)
        ]
        assert matching == [target]


def test_only_tables_that_are_sent_whole_keep_deleted_rows(config: dict[str, str]) -> None:
    assert config["transforms"] == "sent,flat"
    assert config["transforms.sent.type"] == "cdclake.connect.DeletedKeys"
    assert "transforms.sent.whole.regex" not in config
    whole = replace(PLAN, tables=tuple(replace(t, replica_identity="full") for t in PLAN.tables))
    pattern = configure(whole, SINK, "shop-lake", AT_AWS)["transforms.sent.whole.regex"]
    for source, matches in {
        "public.orders": True,
        "public.Order.Lines+": True,
        "public.orders2": False,
        "publicxorders": False,
    }.items():
        assert bool(re.fullmatch(pattern, source)) == matches


def test_tables_of_one_topic_name_it_once() -> None:
    shared = replace(LINES, topic=ORDERS.topic)
    plan = replace(PLAN, tables=(ORDERS, shared))
    assert configure(plan, SINK, "shop-lake", AT_AWS)["topics"] == "shop.public.orders"


def test_the_file_changes_the_interval_and_nothing_that_is_derived(config: dict[str, str]) -> None:
    assert config["iceberg.control.commit.interval-ms"] == "5000"
    derived = replace(SINK, settings={"iceberg.control.topic": "another"})
    assert configure(PLAN, derived, "shop-lake", AT_AWS)["iceberg.control.topic"] == (
        "__cdclake-control.shop.lake"
    )


def test_an_interrupted_first_commit_is_read_again(config: dict[str, str]) -> None:
    assert config["iceberg.kafka.auto.offset.reset"] == "earliest"


def test_new_tables_keep_few_metadata_files(config: dict[str, str]) -> None:
    kept = "iceberg.tables.auto-create-props.write.metadata"
    assert config[f"{kept}.delete-after-commit.enabled"] == "true"
    assert int(config[f"{kept}.previous-versions-max"]) < 100


def test_two_sinks_share_no_topic_group_or_transaction(config: dict[str, str]) -> None:
    second = configure(PLAN, replace(SINK, name="second"), "shop-second", AT_AWS)
    for setting in (
        "iceberg.control.topic",
        "iceberg.control.group-id-prefix",
        "iceberg.connect.group-id",
        "iceberg.coordinator.transactional.prefix",
    ):
        assert config[setting] != second[setting]


def test_endpoints_are_set_only_for_the_local_lake(config: dict[str, str]) -> None:
    assert not [name for name in config if "endpoint" in name or "path-style" in name]
    here = replace(AT_AWS, endpoint="http://127.0.0.1:1")
    local = configure(PLAN, SINK, "shop-lake", here)
    assert local["iceberg.catalog.glue.endpoint"] == "http://127.0.0.1:1"
    assert local["iceberg.catalog.s3.path-style-access"] == "true"
    assert local["iceberg.kafka.sasl.mechanism"] == "IAM"


def test_another_plugin_gets_its_settings_alone() -> None:
    other = replace(SINK, plugin="a.zip", connector_class="io.example.Out", tasks=3)
    assert configure(PLAN, other, "shop-lake", AT_AWS) == {
        "connector.class": "io.example.Out",
        "tasks.max": "3",
        "topics": "shop.public.orders,shop.public.lines",
        "iceberg.control.commit.interval-ms": "5000",
    }
