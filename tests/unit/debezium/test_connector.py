"""What the connector is told of the topics of domains, and of limits."""

import re
from dataclasses import replace
from typing import get_args

from cdclake.debezium.connector import (
    MASKS,
    SALT,
    SourceAddress,
    connector_config,
    queue_bytes,
)
from cdclake.masks import REDACTED, MaskKind
from cdclake.plan import Column, Plan, Table
from tests.recorded.firehose import stream_of
from tests.source_tree import PROJECT
from tests.unit.postgres import tables

ADDRESS = SourceAddress(
    host="h", port=5432, database="d", user="u", password="${p}", sslmode="prefer"
)


def test_the_converter_in_java_reads_the_settings_that_are_written() -> None:
    java = (PROJECT / "java/main/cdclake/connect/MaskConverter.java").read_text()
    names = re.findall(r'String [A-Z]+ = "([\w.]+)"', java)
    assert [f"{MASKS}.{name}" for name in names] == [
        SALT, f"{MASKS}.hash", f"{MASKS}.token", f"{MASKS}.redact", f"{MASKS}.month",
        f"{MASKS}.null", f"{MASKS}.truncate.", f"{MASKS}.placeholder",
    ]  # fmt: skip
    kinds = {name.removesuffix(".") for name in names} - {"salt.secret", "placeholder"}
    assert kinds == set(get_args(MaskKind))
    redact = (PROJECT / "java/main/cdclake/connect/RedactMask.java").read_text()
    assert f'REDACTED = "{REDACTED}"' in redact


def test_a_renamed_column_is_taken_under_all_its_names_until_another_has_one() -> None:
    columns = (
        Column(source="id", name="id", type="bigint"),
        Column(source="email", name="mail", type="text", mask="hash", renamed_from=("mail",)),
    )
    table = Table(
        schema="public", table="t", name="t", topic="x.public.t", key=("id",), columns=columns
    )
    plan = Plan(name="x", source_database="d", lake_database="l", tables=(table,))
    config = connector_config(plan, ADDRESS, epoch=1, mask_salt="${salt}", max_queue_bytes=1)
    assert config["column.include.list"].endswith(",(?-i)public[.]t[.](?:id|email|mail)")


def test_the_tables_of_a_domain_go_to_its_topic_and_no_other() -> None:
    own, shared = (
        Table(
            schema="public", table=name, name=name.lower(), topic=topic, key=("id",),
            columns=(Column(source="id", name="id", type="bigint"),), delivery="firehose",
        )
        for name, topic in (("t", "x.public.t"), ("a.b", "x.sales"))
    )  # fmt: skip
    streams = [
        stream_of(own), replace(stream_of(shared), name="sales", routed=True),
    ]  # fmt: skip
    plan = Plan(
        name="x", source_database="d", lake_database="l", tables=(own, shared),
        deliveries=tuple(streams),
    )  # fmt: skip
    config = connector_config(plan, ADDRESS, epoch=1, mask_salt="salt", max_queue_bytes=1)
    assert config["transforms"] == "epoch,domain0,unconverted,oversized"
    route = {k.rpartition(".")[2]: v for k, v in config.items() if "transforms.domain0" in k}
    assert route == {
        "type": "org.apache.kafka.connect.transforms.RegexRouter",
        "regex": "x\\x2epublic\\x2ea\\x2eb",
        "replacement": "x.sales",
    }
    assert re.fullmatch(route["regex"], "x.public.a.b")
    assert not re.fullmatch(route["regex"], "x.public.axb")
    alone = connector_config(
        replace(plan, deliveries=()), ADDRESS, epoch=1, mask_salt="salt", max_queue_bytes=1
    )
    assert alone["transforms"] == "epoch,unconverted,oversized"


def test_the_connectors_sessions_write_values_as_debezium_reads_them() -> None:
    config = connector_config(tables.plan(), ADDRESS, epoch=1, mask_salt="", max_queue_bytes=1)
    options = config["driver.options"].removeprefix("-c ").split(" -c ")
    assert options == [
        "bytea_output=hex", "IntervalStyle=postgres", "lc_monetary=C", "row_security=off",
    ]  # fmt: skip


def test_the_queue_is_bounded_by_bytes_and_no_client_setting_is_overridden() -> None:
    columns = (Column(source="id", name="id", type="bigint"),)
    table = Table(
        schema="public", table="t", name="t", topic="x.public.t", key=("id",), columns=columns
    )
    plan = Plan(name="x", source_database="d", lake_database="l", tables=(table,))
    heap = queue_bytes(1024**3)
    config = connector_config(plan, ADDRESS, epoch=1, mask_salt="", max_queue_bytes=heap)
    assert config["max.queue.size.in.bytes"] == str(128 * 1024**2)
    assert not [key for key in config if ".override." in key]
