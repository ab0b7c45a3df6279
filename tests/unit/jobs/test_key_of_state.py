"""A state is continued with its own key, whose columns may be declared in another order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.errors import TableError
from cdclake.iceberg.schemas import DERIVED_PROPERTY
from cdclake.jobs.iceberg.lake_tables import LakeTables


def lake(key: str | None, **others: str) -> Any:
    properties = others if key is None else {"cdclake.key": key}
    table = SimpleNamespace(properties=lambda: properties)
    return SimpleNamespace(load=lambda _: table)


@pytest.mark.parametrize("stored", ["shop,number", "number,shop", None])
def test_the_order_of_a_key_may_change(stored: str | None) -> None:
    LakeTables.check_key(lake(stored), "orders", "shop,number")


@pytest.mark.parametrize("stored", ["shop", "number", "shop,number,year"])
def test_the_columns_of_a_key_may_not(stored: str) -> None:
    with pytest.raises(TableError, match=f"its key is {stored} and cannot become shop,number"):
        LakeTables.check_key(lake(stored), "orders", "shop,number")


def test_a_derived_table_is_no_state() -> None:
    derived = lake(None, **{DERIVED_PROPERTY: "true"})
    with pytest.raises(TableError, match="a derived table of this name"):
        LakeTables.check_key(derived, "orders", "id")
