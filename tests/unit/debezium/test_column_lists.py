"""The connector's lists of columns: one entry per table, and a match for no other name."""

from __future__ import annotations

import json
import re

import pytest

from cdclake.debezium.connector import SourceAddress, connector_config
from cdclake.plan import Column, Plan, Table

ADDRESS = SourceAddress(
    host="h", port=5432, database="d", user="u", password="${p}", sslmode="prefer"
)
NAMES = (
    *("id", "id_2", "a", "ab", "Total", "total price", " led", "cut ", "x,y", "a.b", "a|b", "(e"),
    *(
        "f)",
        "g[",
        "h]",
        "\\",
        "\\E",
        "*",
        "+",
        "?",
        "{2}",
        "$",
        "^",
        "#h",
        "new\nline",
        ":;",
        "ü",
        "😀",
    ),
)
TABLES = (("public", "orders"), ("my schema", "Order.Lines"), ("a,b", "c|d"), ("s", "(t"))
LISTS = ("column.include.list", "cdclake.mask.hash", "cdclake.arrays.columns")


def config_of(tables: list[Table]) -> dict[str, str]:
    plan = Plan(name="x", source_database="d", lake_database="l", tables=tuple(tables))
    return connector_config(plan, ADDRESS, epoch=1, mask_salt="${s}", max_queue_bytes=1)


def table_of(schema: str, table: str, columns: list[Column]) -> Table:
    key = (columns[0].name,)
    return Table(schema=schema, table=table, name="t", topic="x.t", key=key, columns=tuple(columns))


def column_of(name: str, setting: str) -> Column:
    if setting.endswith("arrays.columns"):
        return Column(source=name, name=name, type="numeric[]")
    if setting.endswith("hash"):
        return Column(source=name, name=name, type="text", mask="hash")
    return Column(source=name, name=name, type="text")


def matches(patterns: str, name: str) -> bool:
    """Match as Debezium's `Predicates.includes`, and as our converters: `matches()` of each entry.

    Java's `(?-i)` reverts the flag with which Debezium compiles; Python has no flag to revert.
    """
    for entry in (each.strip() for each in patterns.split(",")):
        assert entry.startswith("(?-i)")
        python = re.sub(r"\\x\{([0-9a-f]+)\}", lambda c: re.escape(chr(int(c[1], 16))), entry[5:])
        if re.fullmatch(python, name):
            return True
    return False


@pytest.mark.parametrize("setting", LISTS)
def test_a_list_matches_the_declared_columns_and_no_others(setting):
    tables = [table_of(*each, [column_of(name, setting) for name in NAMES]) for each in TABLES]
    patterns = config_of(tables)[setting]
    for schema, table in TABLES:
        for name in NAMES:
            dotted = f"{schema}.{table}.{name}"
            assert matches(patterns, dotted), dotted
            assert not matches(patterns, f"{dotted}_"), dotted
            assert not matches(patterns, f"x{dotted}"), dotted
            assert not matches(patterns, f"{schema}.{table}.x{name}"), dotted
            if name.swapcase() not in NAMES:
                assert not matches(patterns, f"{schema}.{table}.{name.swapcase()}"), dotted
            assert not matches(patterns, f"{schema}.{table.swapcase()}.{name}"), dotted


@pytest.mark.parametrize("setting", LISTS)
def test_the_columns_of_a_table_are_not_those_of_another(setting):
    first = table_of("public", "t", [column_of("a", setting), column_of("b", setting)])
    second = table_of("public", "u", [column_of("c", setting)])
    patterns = config_of([first, second])[setting]
    taken = [f"public.{t}.{c}" for t in "tu" for c in "abc"]
    assert [each for each in taken if matches(patterns, each)] == [
        "public.t.a", "public.t.b", "public.u.c",
    ]  # fmt: skip


def test_the_configuration_of_500_tables_of_60_columns_fits_a_template():
    """CloudFormation allows 1,000,000 bytes; Kafka Connect writes a record of at most 1 MiB."""
    names = ["id", *(f"shipping_address_{n:03d}" for n in range(59))]
    columns = [Column(source=name, name=name, type="text") for name in names]
    tables = [table_of("public", f"customer_orders_{n:04d}", columns) for n in range(500)]
    assert len(json.dumps(config_of(tables))) < 700_000
