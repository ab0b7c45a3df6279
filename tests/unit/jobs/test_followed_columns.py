"""Columns of earlier events that a stream knows under the types of a new plan."""

from __future__ import annotations

import pytest

from cdclake.jobs.stream.schema_drift import followed_columns
from tests.unit.postgres.tables import declared


@pytest.mark.parametrize(
    ("earlier", "now", "is_known"),
    [
        ("integer", "bigint", True),
        ("numeric(10,2)", "numeric(12,2)", True),
        ("varchar(20)", "varchar(40)", True),
        ("char(5)", "char(5)", True),
        ("bigint", "integer", False),
        ("text", "integer", False),
        ("integer[]", "bigint[]", False),
    ],
)
def test_column_stays_known_if_its_type_can_follow(earlier: str, now: str, is_known: bool) -> None:
    first_seen = {f"price {earlier}": "p1", "gone text": "p2"}
    expected = {f"price {now}": "p1"} if is_known else {}
    assert followed_columns(first_seen, declared(("price", now))) == expected


def test_column_whose_name_begins_as_that_of_another_stays_itself() -> None:
    first_seen = {"price net integer": "p2", "price integer": "p3"}
    table = declared(("price", "bigint"), ("price net", "integer"), ("new", "integer"))
    assert followed_columns(first_seen, table) == {"price bigint": "p3", "price net integer": "p2"}


def test_column_with_two_known_types_has_the_earlier_position() -> None:
    first_seen = {"price integer": "p1", "price bigint": "p2"}
    assert followed_columns(first_seen, declared(("price", "bigint"))) == {"price bigint": "p1"}
