"""Expressions of loads, polls and `verify` on a real PostgreSQL, at the ends of some types."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from cdclake.debezium.field_values import holds
from cdclake.plan import Column, Plan, Table
from cdclake.postgres.event_values import SESSION, log_value
from cdclake.verify.columns import compared_columns

pytestmark = pytest.mark.local

INFINITY_US = 9223372036825200000  # Debezium's number for it
LAST_US = 2**63 - 1  # 294247-01-10 04:00:54.775807
TIMESTAMPS = {
    "294247-01-09 17:46:40": 9223372000000000000,
    "294247-01-10 04:00:54.775807": LAST_US,
    "294247-01-10 04:00:54.775808": INFINITY_US,
    "294276-12-31 23:59:59.999999": INFINITY_US,
    "infinity": INFINITY_US,
    "-infinity": -9223372036832400000,
    "4714-11-24 00:00:00 BC": -210866803200000000,
    "1970-01-01": 0,
    None: None,
}
INTERVALS = {
    "infinity": "infinity",
    "-infinity": "-infinity",
    "1 year 2 months -3 days 04:05:06.78": "P1Y2M-3DT4H5M6.78S",
    None: None,
}


def values(database: str, kind: str, value: object) -> list[Any]:
    """The value of a column `x`: of loads and polls, and of `verify`."""
    column = Column(source="x", name="x", type=kind)
    table = Table(
        schema="public", table="t", name="t", topic="x.public.t", key=("id",),
        columns=(Column(source="id", name="id", type="bigint"), column),
    )  # fmt: skip
    plan = Plan(name="x", source_database="d", lake_database="l", tables=(table,))
    compared = compared_columns(table, plan, {})[1].source
    with psycopg.connect(database, autocommit=True) as connection:
        for setting in SESSION:
            connection.execute(setting.encode())
        # OFFSET: a constant would be folded into the branches of CASE that it does not take.
        rows = f"(SELECT %s::{kind} AS x OFFSET 0) AS t"
        query = f"SELECT {log_value(column, table)}, {compared} FROM {rows}"
        [row] = connection.execute(query.encode(), (value,))
    return list(row)


@pytest.mark.parametrize(("moment", "micros"), TIMESTAMPS.items())
def test_late_timestamps_are_refused_and_do_not_fail(
    database: str, moment: str | None, micros: int | None
) -> None:
    check = holds(Column(source="x", name="x", type="timestamp").column_type)
    assert check is not None
    loaded, compared = values(database, "timestamp", moment)
    assert loaded == micros
    is_held = micros is None or check(micros)
    assert compared == ((None if micros is None else str(micros)) if is_held else moment)
    [listed, _] = values(database, "timestamp[]", [moment])
    assert listed == f"[{'null' if micros is None else micros}]"


@pytest.mark.parametrize(("interval", "text"), INTERVALS.items())
def test_verify_compares_intervals_as_they_are_loaded(
    database: str, interval: str | None, text: str | None
) -> None:
    assert values(database, "interval", interval) == [text, text]
