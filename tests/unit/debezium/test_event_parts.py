"""The table of a record in a topic that several tables share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdclake.debezium.event_parts import table_of
from cdclake.plan import Column, Table

ORDERS = Table(
    schema="public",
    table="orders",
    name="orders",
    topic="shop.sales",
    key=("id",),
    columns=(Column(source="id", name="id", type="bigint"),),
)
ITEMS = replace(ORDERS, table="items", name="items")


@pytest.mark.parametrize(
    ("value", "table"),
    [
        (b'{"op": "c", "source": {"schema": "public", "table": "items"}}', ITEMS),
        (b'{"payload": {"source": {"schema": "public", "table": "items"}}, "schema": {}}', ITEMS),
        (b'{"op": "c", "source": {"schema": "public", "table": "orders"}}', ORDERS),
        (b'{"op": "c", "source": {"schema": "public", "table": "others"}}', ORDERS),
        (b'{"op": "c"}', ORDERS),
        (b"{", ORDERS),
        (None, ORDERS),
    ],
)
def test_the_table_of_a_value_is_the_one_that_it_names(value: bytes | None, table: Table) -> None:
    assert table_of(value, [ORDERS, ITEMS]) is table
    assert table_of(value, []) is None
