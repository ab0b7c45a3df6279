"""The lake's tables as sources of a dbt project."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cdclake import naming
from cdclake.config.dbt_sources import as_yaml, dbt_sources
from cdclake.config.resolve import load_plan

SHOP = Path(__file__).resolve().parents[3] / "pipelines" / "shop.yaml"


@pytest.fixture(scope="module")
def tables() -> dict[str, dict[str, Any]]:
    content = dbt_sources(load_plan(SHOP), "awsdatacatalog", 36)
    assert YAML(typ="safe").load(as_yaml(content)) == content
    [source] = content["sources"]
    assert source["schema"] == source["name"] and source["database"] == "awsdatacatalog"
    return {table["name"]: table for table in source["tables"]}


def checks_of(table: dict[str, Any]) -> dict[str, list[Any]]:
    """The tests of each column that has some."""
    return {c["name"]: c["data_tests"] for c in table["columns"] if "data_tests" in c}


def test_each_table_has_its_rows_and_its_changelog(tables: dict[str, dict[str, Any]]) -> None:
    sources = ("customers", "orders", "order_items")
    assert [*tables] == [f"{t}_{what}" for t in sources for what in ("current", "changes")]
    plan = load_plan(SHOP)
    for table in plan.tables:
        columns = [column["name"] for column in tables[f"{table.name}_current"]["columns"]]
        assert columns == [column.name for column in table.columns]


@pytest.mark.parametrize(
    ("readers", "has_rows"),
    [(("spark", "duckdb"), False), (("trino",), True), (("athena",), True)],
)
def test_rows_are_listed_if_a_reader_stores_views(readers: tuple[str, ...], has_rows: bool) -> None:
    plan = replace(load_plan(SHOP), readers=readers)
    [source] = dbt_sources(plan, "awsdatacatalog", 36)["sources"]
    names = {table["name"] for table in source["tables"]}
    assert "orders_changes" in names
    assert ("orders_current" in names) == has_rows


def test_a_key_of_one_column_is_unique_and_one_of_several_is_not_null(
    tables: dict[str, dict[str, Any]],
) -> None:
    assert checks_of(tables["orders_current"]) == {"order_id": ["not_null", "unique"]}
    assert checks_of(tables["order_items_current"]) == {
        "order_id": ["not_null"],
        "line_no": ["not_null"],
    }


def test_freshness_and_operations_are_those_of_the_changelog(
    tables: dict[str, dict[str, Any]],
) -> None:
    changes = tables["orders_changes"]
    assert changes["loaded_at_field"] == naming.INGESTED_AT
    assert changes["freshness"] == {"warn_after": {"count": 36, "period": "hour"}}
    operations = checks_of(changes)[naming.OP][1]["accepted_values"]["values"]
    assert operations == ["c", "u", "d", "r", "t"]
    assert "freshness" not in tables["orders_current"]
