"""Each topic that Debezium may write to exists: Kafka creates none, the producer would hang."""

import re
from collections.abc import Mapping

import pytest

from cdclake import naming
from cdclake.config.resolve import find_problems, load_plan
from cdclake.config.yaml_reader import parse_document
from cdclake.debezium.connector import SourceAddress, connector_config
from cdclake.plan import Plan
from tests.source_tree import PROJECT

ADDRESS = SourceAddress(
    host="h", port=5432, database="d", user="u", password="${p}", sslmode="prefer"
)
PIPELINES = ("shop.yaml", "pagila.yaml", "shop_firehose.yaml")
# Prefixes of logical messages: none, words, and what a pattern easily misses.
PREFIXES = ("", "outbox", "a,b", "two\nlines", "\n", "ümläut", " ", "a" * 1000)


def written_topics(config: Mapping[str, str]) -> set[str]:
    """Topics that Debezium 3.7's PostgreSQL connector may write to with these settings.

    The classes that create records: EventDispatcher (changes), HeartbeatImpl, TransactionMonitor,
    LogicalDecodingMessageMonitor, SinkNotificationChannel. Schema changes are sent only by
    connectors with a schema history; signals are only read.
    """
    prefix = config["topic.prefix"]
    topics = {
        routed(naming.topic_name(prefix, *names_of(pattern)), config)
        for pattern in config["table.include.list"].split(",")
    }
    if int(config.get("heartbeat.interval.ms", "0")):
        topics.add(f"{config.get('topic.heartbeat.prefix', '__debezium-heartbeat')}.{prefix}")
    if "sink" in config.get("notification.enabled.channels", ""):
        topics.add(config["notification.sink.topic.name"])
    if config.get("provide.transaction.metadata", "false") != "false":
        topics.add(f"{prefix}.{config.get('topic.transaction', 'transaction')}")
    excluded = re.compile(config.get("message.prefix.exclude.list", "$."))
    if not all(excluded.fullmatch(message) for message in PREFIXES):
        topics.add(f"{prefix}.message")
    return topics


def names_of(pattern: str) -> list[str]:
    """Schema and table that the pattern of `exactly` matches."""
    spelled = pattern.removeprefix("(?-i)").split("[.]")
    code = re.compile(r"\\x(?:\{([0-9a-f]+)\}|([0-9a-f]{2}))")
    return [code.sub(lambda found: chr(int(found[1] or found[2], 16)), name) for name in spelled]


def routed(topic: str, config: Mapping[str, str]) -> str:
    """The topic after the transforms that change it."""
    for name in config["transforms"].split(","):
        regex = config.get(f"transforms.{name}.regex")
        if regex and re.fullmatch(regex, topic):
            return config[f"transforms.{name}.replacement"]
    return topic


def config_of(plan: Plan) -> dict[str, str]:
    return connector_config(plan, ADDRESS, epoch=1, mask_salt="${s}", max_queue_bytes=1)


@pytest.mark.parametrize("file", PIPELINES)
def test_every_topic_that_debezium_may_write_to_is_created(file: str) -> None:
    plan = load_plan(PROJECT / "pipelines" / file)
    assert written_topics(config_of(plan)) == set(plan.topics)


def test_a_writer_without_its_topic_is_noticed() -> None:
    plan = load_plan(PROJECT / "pipelines" / "shop.yaml")
    config = config_of(plan)
    without = {k: v for k, v in config.items() if k != "message.prefix.exclude.list"}
    assert written_topics(without) - set(plan.topics) == {f"{plan.name}.message"}
    words = {**config, "message.prefix.exclude.list": ".*"}
    assert written_topics(words) - set(plan.topics) == {f"{plan.name}.message"}
    chatty = {**config, "provide.transaction.metadata": "true"}
    assert written_topics(chatty) - set(plan.topics) == {f"{plan.name}.transaction"}


@pytest.mark.parametrize(
    ("table", "topic"),
    [
        ("Orders-2.x", "shop.public.Orders-2.x"),
        ("größe, 1", "shop.public.gr__e__1"),
        ("t\uffff", "shop.public.t_"),
        ("t\U0001f600", "shop.public.t__"),
        ("\U00010000\U0010ffff", "shop.public.____"),
    ],
)
def test_a_topic_has_an_underscore_for_each_utf_16_unit(table: str, topic: str) -> None:
    """Topics as Debezium 3.7's SchemaTopicNamingStrategy names them."""
    assert naming.topic_name("shop", "public", table) == topic


def test_tables_whose_topics_debezium_would_share_are_refused() -> None:
    table = "{key: [id], columns: {id: integer}}"
    text = (
        "version: 1\nname: shop\nsource: {database: shop}\ntables:\n"
        f"  public.t\U0001f600: {table}\n  public.t__: {table}\n"
    )
    [problem] = find_problems(parse_document(text))
    assert problem.line == 6
    assert "would share the topic 'shop.public.t__'" in problem.message
