"""Requests that follow the notes of a source check, also after a check that died."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdclake.control_objects import NEW_COLUMNS, WIDENED
from cdclake.plan import Plan
from cdclake.source_notes import note_new_columns, note_widened, read_widened
from tests.spark.events import MemoryStore
from tests.unit.postgres.tables import declared

TABLES = (declared(), declared(table="customers", name="customers"))
PLAN = Plan(name="shop", source_database="d", lake_database="l", tables=TABLES, new_columns="stop")
NOTE = {table.name: {"note": "text"} for table in TABLES}
TYPES = {table.name: {"number": "bigint"} for table in TABLES}


class FailingStore(MemoryStore):
    """Store that refuses to write requests to resume one table."""

    refused = "resume/customers.json"

    def write(self, name: str, content: dict[str, Any]) -> None:
        if name == self.refused:
            raise OSError("Slow down")
        super().write(name, content)


@pytest.fixture
def control() -> Any:
    return FailingStore()


def requests(control: Any) -> set[str]:
    return {name for name in control.stored if name not in (NEW_COLUMNS, WIDENED)}


def test_resume_after_declared_columns_is_completed_by_the_next_check(control: Any) -> None:
    note_new_columns(control, PLAN, NOTE)
    with pytest.raises(OSError, match="Slow down"):
        note_new_columns(control, PLAN, {})
    assert requests(control) == {"resume/orders.json"}
    control.refused = ""
    note_new_columns(control, PLAN, {})
    assert requests(control) == {"resume/orders.json", "resume/customers.json"}
    assert control.read(NEW_COLUMNS).content == {"tables": {}}


def test_column_that_is_new_again_ends_an_uncompleted_resume(control: Any) -> None:
    note_new_columns(control, PLAN, NOTE)
    with pytest.raises(OSError, match="Slow down"):
        note_new_columns(control, PLAN, {})
    control.refused = ""
    note_new_columns(control, PLAN, {"customers": NOTE["customers"]})
    assert requests(control) == {"resume/orders.json"}
    assert control.read(NEW_COLUMNS).content == {"tables": {"customers": NOTE["customers"]}}


def test_repair_of_widened_columns_is_completed_by_the_next_check(control: Any) -> None:
    """The next check finds nothing: its plan has the noted types."""
    with pytest.raises(OSError, match="Slow down"):
        note_widened(control, PLAN, TYPES)
    assert read_widened(control) == TYPES
    control.refused = ""
    note_widened(control, replace(PLAN, tables=TABLES[:1]), {})
    assert "repairs/customers.replay.json" not in requests(control)
    assert control.read(WIDENED).content == {"tables": TYPES}


@pytest.mark.parametrize("found", [{}, {"customers": {"number": "bigint"}}])
def test_replays_of_all_widened_tables_are_requested(control: Any, found: Any) -> None:
    with pytest.raises(OSError, match="Slow down"):
        note_widened(control, PLAN, TYPES)
    control.refused = ""
    note_widened(control, PLAN, found)
    resumes = {"resume/orders.json", "resume/customers.json"}
    assert requests(control) == resumes | {
        "repairs/orders.replay.json",
        "repairs/customers.replay.json",
    }
    assert control.read(WIDENED).content == {"tables": TYPES}
