"""What the connector is told of renamed columns, and of the topics of domains."""

import re
from dataclasses import replace

from cdclake.debezium.connector import (
    SALT,
    SALTS_PLACE,
    SourceAddress,
    connector_config,
    queue_bytes,
)
from cdclake.packing import PROJECT
from cdclake.plan import Column, Plan, Table
from tests.recorded.firehose import stream_of

OURS = "cdclake.connect.SaltedConnector"
ADDRESS = SourceAddress(
    host="h", port=5432, database="d", user="u", password="${p}", sslmode="prefer"
)


def test_a_renamed_column_is_taken_and_masked_under_all_its_names() -> None:
    columns = (
        Column(source="id", name="id", type="bigint"),
        Column(source="email", name="mail", type="text", mask="hash", renamed_from=("mail",)),
    )
    table = Table(
        schema="public", table="t", name="t", topic="x.public.t", key=("id",), columns=columns
    )
    plan = Plan(name="x", source_database="d", lake_database="l", tables=(table,))
    config = connector_config(plan, ADDRESS, epoch=1, mask_salt="${salt}", max_queue_bytes=1)
    both = "(?-i)public[.]t[.]email,(?-i)public[.]t[.]mail"
    assert config["column.include.list"].endswith(f"(?-i)public[.]t[.]id,{both}")
    assert config["column.mask.hash.v2.SHA-256.with.salt.cdclake"] == both


def test_a_salt_stands_in_a_value_and_our_connector_puts_it_into_the_names() -> None:
    java = (PROJECT / "java/main/cdclake/connect/SaltedTask.java").read_text()
    assert re.findall(r'String \w+ = "([\w.]+)"', java) == [SALT, SALTS_PLACE]
    columns = (Column(source="id", name="id", type="bigint"),)
    table = Table(
        schema="public", table="t", name="t", topic="x.public.t", key=("id",), columns=columns
    )
    plan = Plan(name="x", source_database="d", lake_database="l", tables=(table,))
    plain = connector_config(plan, ADDRESS, epoch=1, mask_salt="${salt}", max_queue_bytes=1)
    assert plain["connector.class"] == "io.debezium.connector.postgresql.PostgresConnector"
    assert SALT not in plain
    email = Column(source="email", name="email", type="text", mask="hash")
    salted = replace(plan, tables=(replace(table, columns=(*columns, email)),))
    config = connector_config(salted, ADDRESS, epoch=1, mask_salt="${salt}", max_queue_bytes=1)
    assert (config["connector.class"], config[SALT]) == (OURS, "${salt}")
    services = PROJECT / "java/resources/META-INF/services"
    listed = services / "org.apache.kafka.connect.source.SourceConnector"
    assert listed.read_text().split() == [OURS]


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
    assert config["transforms"] == "epoch,domain0"
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
    assert alone["transforms"] == "epoch"


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
