"""What a column may be declared as once the lake holds values of it."""

import pytest

from cdclake.debezium.types import parse_type
from cdclake.iceberg.evolution import can_become, evolve_table
from cdclake.iceberg.schemas import TableSchema


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        ("int", "bigint", True),
        ("smallint", "integer", True),
        ("numeric(8,2)", "numeric(12,2)", True),
        ("varchar(10)", "text", True),
        ("text", "varchar(20)", True),
        ("timestamp(3)", "timestamp", True),
        ("text[]", "text[]", True),
        ("bigint", "int", False),
        ("numeric(12,2)", "numeric(8,2)", False),
        ("numeric(8,2)", "numeric(12,4)", False),  # no file can be read with another scale
        ("numeric(38,2)", "numeric(40,2)", False),  # a decimal and an exact text
        ("numeric", "text", False),
        ("date", "timestamp", False),  # days and microseconds
        ("char(5)", "text", False),  # the blanks go, and no event says so
        ("char(5)", "char(8)", False),
        ("varbit(8)", "varbit(16)", True),
        ("varbit(1)", "varbit(8)", False),  # a boolean and bytes
        ("text", "text[]", False),
        ("int", "real", False),
        ("real", "double precision", False),  # a 0.1 tells of neither, and is another number
    ],
)
def test_types(old, new, allowed):
    before, after = parse_type(old), parse_type(new)
    assert before is not None and after is not None
    assert can_become(before, after) is allowed


def schema(*columns: tuple[str, str]) -> TableSchema:
    return TableSchema(name="t", columns=columns)


def test_a_table_that_fits_is_left_alone():
    actual = {"a": "int", "cdc_dropped_gone": "string", "cdc_op": "string"}
    assert evolve_table("d", schema(("a", "int")), actual) == []


def test_a_column_that_is_declared_no_more_keeps_its_values_under_another_name():
    actual = {"a": "int", "gone": "string", "cdc_dropped_gone": "int"}
    assert evolve_table("d", schema(("a", "int")), actual) == [
        "ALTER TABLE lake.`d`.`t` RENAME COLUMN `gone` TO `cdc_dropped_gone_2`",
    ]


def test_a_column_that_comes_again_begins_anew_with_whatever_type():
    actual = {"a": "int", "cdc_dropped_b": "int"}
    assert evolve_table("d", schema(("a", "int"), ("b", "date")), actual) == [
        "ALTER TABLE lake.`d`.`t` ADD COLUMNS (`b` date)",
    ]


def test_columns_are_added_and_widened():
    wanted = schema(("a", "bigint"), ("b`c", "string"), ("d", "decimal(12,2)"), ("e", "int"))
    assert evolve_table("d", wanted, {"a": "int", "d": "decimal(8,2)"}) == [
        "ALTER TABLE lake.`d`.`t` ADD COLUMNS (`b``c` string, `e` int)",
        "ALTER TABLE lake.`d`.`t` ALTER COLUMN `a` TYPE bigint",
        "ALTER TABLE lake.`d`.`t` ALTER COLUMN `d` TYPE decimal(12,2)",
    ]


def test_a_column_that_cannot_become_it_is_named():
    with pytest.raises(ValueError, match="column a is bigint and cannot become int"):
        evolve_table("d", schema(("a", "int")), {"a": "bigint"})
    with pytest.raises(ValueError, match="column a is float and cannot become double"):
        evolve_table("d", schema(("a", "double")), {"a": "float"})
