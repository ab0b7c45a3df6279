"""A state is continued with its own key, whose order is that of hashes of erased rows."""

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


@pytest.mark.parametrize("stored", ["shop,number", None])
def test_a_state_goes_on_with_its_key(stored: str | None) -> None:
    LakeTables.check_key(lake(stored), "orders", "shop,number")


@pytest.mark.parametrize("stored", ["shop", "number", "number,shop", "shop,number,year"])
def test_the_key_of_a_state_may_not_change(stored: str) -> None:
    with pytest.raises(TableError, match=f"its key is {stored} and cannot become shop,number"):
        LakeTables.check_key(lake(stored), "orders", "shop,number")


def test_a_derived_table_is_no_state() -> None:
    derived = lake(None, **{DERIVED_PROPERTY: "true"})
    with pytest.raises(TableError, match="a derived table of this name"):
        LakeTables.check_key(derived, "orders", "id")
