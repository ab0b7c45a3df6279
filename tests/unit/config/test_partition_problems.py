"""A case for each kind of mistake in `partition_by:`."""

# ruff: noqa: E501  (the cases stand in rows)
from __future__ import annotations

import pytest

from cdclake.config.resolve import find_problems
from cdclake.config.yaml_reader import parse_document
from tests.unit.config.mistakes import assert_remedies, assert_reported
from tests.unit.config.pipelines import below

in_table = below("public.orders:")
in_columns = below("columns:")
CASES = {
    "transform": (in_table("    partition_by: [week(note)]"), 6, 20, "unknown partition", "month"),
    "transform's type": (in_table("    partition_by: [day(note)]"), 6, 20, "is string", "date"),
    "partitions of floats": (
        in_columns("      rate: real").replace("    key:", "    partition_by: [rate]\n    key:"),
        6, 20, "'rate', a real, may be NaN or infinite", "another column",
    ),
    "partitions below the least decimal": (
        in_columns("      price: numeric(5, 2)").replace(
            "    key:", "    partition_by: ['truncate(100, price)']\n    key:"
        ), 6, 20, "lowers -999.99, the least value of 'price', below decimal(5,2)", "`bucket(16, price)`",
    ),
    "transform's column": (in_table("    partition_by: [day(at)]"), 6, 20, "'at'", "declare it"),
    "bucket of a column first": (
        in_table('    partition_by: ["bucket(order_id, 16)"]'), 6, 20, "needs a whole number first", "write `bucket(16, order_id)`",
    ),
    "truncate of a quoted column first": (
        in_table("    partition_by: ['truncate(\"a b\", 4)']"), 6, 20, "whole number first", 'write `truncate(4, "a b")`',
    ),
    "transform cut off": (in_table("    partition_by: ['bucket(2']"), 6, 20, "cut off", "quote"),
    "transform twice": (
        in_table("    partition_by: [day(placed_at), month(placed_at)]"), 6, 36, "'placed_at' again", "keep",
    ),
    "partition's name": (
        in_columns("      placed_at_day: int").replace("    key:", "    partition_by: [day(placed_at)]\n    key:"),
        6, 20, "'placed_at_day', like a column", "another transform",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message", "remedy"), CASES.values(), ids=CASES)
def test_a_mistake_is_reported_where_it_is(text, line, column, message, remedy):
    assert_reported(text, line, column, message, remedy)
    assert_remedies(text)


@pytest.mark.parametrize(
    ("kind", "by"),
    [
        ("numeric(5, 2)", "truncate(9, price)"), ("numeric(5, 2)", "bucket(9, price)"), ("money", "truncate(100, price)"),
        ("numeric", "truncate(100, price)"), ("numeric(5, 2)", "price"), ("numeric(39, 2)", "truncate(2, price)"),
    ],
)  # fmt: skip
def test_decimals_with_a_partition_for_each_value_are_accepted(kind, by):
    text = in_columns(f"      price: {kind}").replace(
        "    key:", f"    partition_by: ['{by}']\n    key:"
    )
    assert find_problems(parse_document(text)) == []
