"""The tables of a running lake: narrow, wide and with long texts, half of them with UUID keys.

Of twenty tables four are wide and four have a text of 2,560 bytes, which PostgreSQL stores out of
line and does not send with an update that leaves it alone. Every value follows from the row's key.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.orders import ORDERS, PLAN
from cdclake import naming
from cdclake.plan import Column, Plan, Table

TEXT = "details"
_WIDER_BY = 20  # pairs of a number and a text
_VALUES = {
    "customer_id": "1 + key % 100000",
    "quantity": "1 + key % 9",
    "price": "(key % 90000) * 0.97",
    "status": "'open'",
    "note": "md5(key::text)",
    "paid": "key % 2 = 0",
    "created_at": "now()",
    "updated_at": "now()",
    TEXT: "repeat(md5(key::text), 80)",
}
_IDS = {"bigint": "key", "uuid": "md5(key::text)::uuid"}
_NUMBERS = {f"number_{n:02}": f"key % {n + 10}" for n in range(_WIDER_BY)}
_TEXTS = {f"text_{n:02}": f"'text ' || key % {n + 100}" for n in range(_WIDER_BY)}
_ALL_VALUES = {**_VALUES, **_NUMBERS, **_TEXTS}


def plan_of_many(count: int, trigger_seconds: int) -> Plan:
    """Return a pipeline of so many tables, their shapes in turn."""
    tables = tuple(_table(number) for number in range(count))
    return replace(PLAN, tables=tables, trigger_seconds=trigger_seconds)


def value_of(column: Column) -> str:
    """Return the SQL of a column's value in the row of `key`."""
    return _IDS[column.type] if column.name in ORDERS.key else _ALL_VALUES[column.name]


def _table(number: int) -> Table:
    key, *values = ORDERS.columns
    if number % 2:
        key = replace(key, type="uuid")
    if number % 5 == 3:
        values += [_column(name, "integer") for name in _NUMBERS]
        values += [_column(name, "varchar(20)") for name in _TEXTS]
    if number % 5 == 4:
        values.append(_column(TEXT, "text"))
    name = f"orders_{number + 1:02}"
    topic = naming.topic_name(PLAN.name, "public", name)
    return replace(ORDERS, table=name, name=name, topic=topic, columns=(key, *values))


def _column(name: str, kind: str) -> Column:
    return Column(source=name, name=name, type=kind)
