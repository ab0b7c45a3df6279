"""Types that the source has widened are laid over the plan; nothing else is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cdclake.config.column_lines import Lines
from cdclake.control_objects import ResumeRequest
from cdclake.debezium.types import parse_type
from cdclake.iceberg.widening import (
    advise_rebuild,
    is_widening,
    still_widened,
    widened_tables,
    with_widened,
)
from cdclake.jobs.control import plan_watcher
from cdclake.jobs.control.plan_watcher import PlanWatcher
from cdclake.local.lake.source_changes import widened_changes
from cdclake.plan import Plan
from cdclake.postgres.widened import find_widened
from cdclake.source_notes import note_widened, read_widened, widening_warnings
from tests.spark.events import MemoryStore
from tests.unit.config.pipelines import VALID
from tests.unit.postgres.tables import actual, column, declared


def stored(control: MemoryStore, name: str) -> dict[str, Any]:
    found = control.read(name)
    assert found is not None
    return found.content


def plan_of(*columns: tuple[str, str], **changes: Any) -> Plan:
    table = declared(*columns) if columns else declared()
    return Plan(name="shop", source_database="d", lake_database="l", tables=(table,), **changes)


def types(plan: Plan) -> dict[str, str]:
    return {column.name: column.type for column in plan.tables[0].columns}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("integer", "bigint", True),
        ("smallint", "bigint", True),
        ("numeric(10,2)", "numeric(12,2)", True),
        ("smallint", "integer", False),  # one type in the lake
        ("varchar(5)", "text", False),
        ("bigint", "integer", False),
        ("numeric(10,2)", "numeric(12,3)", False),
        ("real", "double precision", False),
        ("integer", "text", False),
        ("integer", "numeric(20,0)", False),
    ],
)
def test_only_a_widening_without_loss_is_one(old: str, new: str, expected: bool) -> None:
    narrow, wide = parse_type(old), parse_type(new)
    assert narrow is not None and wide is not None
    assert is_widening(narrow, wide) is expected


def test_a_plan_takes_wider_types_and_no_others() -> None:
    plan = plan_of(("id", "integer"), ("number", "integer"))
    name = plan.tables[0].name
    wider = with_widened(plan, {name: {"id": "bigint", "number": "text"}, "other": {"id": "text"}})
    assert types(wider) == {"id": "bigint", "number": "integer"}
    assert with_widened(wider, {name: {"id": "integer"}}) == wider
    assert widened_tables(plan, wider) == [name]  # whose quarantined events are replayed
    assert widened_tables(wider, wider) == widened_tables(None, wider) == []
    assert still_widened(plan, wider.tables) == wider  # the file has not followed, or is of before
    stop = replace(plan, widened_columns="stop")
    assert with_widened(stop, {name: {"id": "bigint"}}) == stop


def test_the_source_check_finds_them() -> None:
    plan = plan_of(("id", "integer"), ("number", "integer"))
    source = actual(columns=(column("id", "bigint"), column("number", "integer")))
    found = find_widened(plan, {source.id: source})
    assert found == {plan.tables[0].name: {"id": "bigint"}}
    assert find_widened(with_widened(plan, found), {source.id: source}) == {}
    assert find_widened(replace(plan, widened_columns="stop"), {source.id: source}) == {}
    assert find_widened(plan, {}) == {}


class Store(MemoryStore):
    """A store that knows its objects' versions."""

    def etag(self, name: str) -> str | None:
        stored = self.read(name)
        return stored.etag if stored else None


def test_the_jobs_lay_noted_types_over_their_plan_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    control: Any = Store()
    plans = Store()
    monkeypatch.setattr(plan_watcher, "ObjectStore", lambda _: plans)
    plan = plan_of(("id", "integer"), ("number", "integer"))
    plans.write("shop.json", json.loads(plan.to_json()))
    watcher = PlanWatcher("s3://state/plans/shop.json", control)
    assert types(watcher.read())["id"] == "integer"
    name = plan.tables[0].name
    note_widened(control, plan, {})
    assert read_widened(control) == {}
    note_widened(control, plan, {name: {"id": "bigint"}})
    note_widened(control, plan, {name: {"number": "bigint"}})
    assert types(watcher.read()) == {"id": "bigint", "number": "bigint"}
    assert ResumeRequest.from_json(stored(control, f"resume/{name}.json")).columns_changed
    assert stored(control, f"repairs/{name}.replay.json")


def test_status_reports_what_the_file_does_not_say_yet(tmp_path: Any) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(VALID.replace("note: text", "note: text\n      number: integer"))
    plan = plan_of(("order_id", "bigint"), ("number", "bigint"))
    [change] = widened_changes(plan, plan.tables[0], Lines(str(file)))
    assert (change.column, change.line) == (
        "number",
        file.read_text().split("number")[0].count("\n") + 1,
    )
    assert "widened from integer to bigint" in change.message
    assert "`number: bigint`; nothing else has to be done" in change.remedy


def test_values_that_became_null_need_a_rebuild(tmp_path: Any) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(VALID.replace("note: text", "note: text\n      number: numeric(10,2)"))
    plan = plan_of(("order_id", "bigint"), ("number", "numeric(14,2)"))
    nulled = replace(plan, not_representable="null")
    [change] = widened_changes(nulled, plan.tables[0], Lines(str(file)))
    assert "`number: numeric(14,2)`; run `cdclake job rebuild_tables" in change.remedy
    assert advise_rebuild(plan, plan.tables[0], ["number"]) == ""
    assert advise_rebuild(nulled, plan.tables[0], ["order_id"]) == ""
    [warning] = widening_warnings(nulled, {plan.tables[0].name: {"number": "numeric(14,2)"}})
    assert "rebuild_tables" in warning
