"""Logical messages, which any login of the source may emit, stop nothing."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from cdclake.config.resolve import load_plan
from tests.local.running import SHOP, shop_lake_in
from tests.unit.debezium.test_topics import PREFIXES

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(600)]


def test_rows_arrive_after_logical_messages_of_any_prefix(tmp_path) -> None:
    with shop_lake_in(tmp_path) as lake:
        with lake.connect() as connection:
            connection.execute("CREATE ROLE least LOGIN")
            for transactional in (False, True):
                for number, prefix in enumerate(PREFIXES):
                    with connection.transaction():
                        connection.execute("SET LOCAL ROLE least")
                        connection.execute(
                            "SELECT pg_logical_emit_message(%s, %s, %s)",
                            (transactional, prefix, "content"),
                        )
                        connection.execute("RESET ROLE")
                        connection.execute(
                            "INSERT INTO customers VALUES (%s, 'after a message')",
                            (900_000 + 100 * transactional + number,),
                        )
        arrived = "SELECT count(*) FROM customers_current WHERE name = 'after a message'"
        lake.eventually(lambda: lake.sql(arrived) == [[2 * len(PREFIXES)]], seconds=90)
        lake.assert_equal()
        existing = set(AdminClient(lake.endpoints.kafka.settings).list_topics(timeout=20).topics)
        plan = load_plan(SHOP)
        assert {topic for topic in existing if plan.name in topic} == set(plan.topics)
        log = (lake.home / "logs" / "connect.log").read_text()
        assert "UNKNOWN_TOPIC_OR_PARTITION" not in log
