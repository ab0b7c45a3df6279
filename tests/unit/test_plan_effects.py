"""Effects of a changed pipeline file on tables, infrastructure and settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.config.resolve import load_plan
from cdclake.plan import Plan
from cdclake.plan_diff import compare
from cdclake.plan_effects import (
    COLUMNS,
    LOAD,
    LOAD_AGAIN,
    REWRITE,
    SETTINGS,
    STOP,
    UNCHANGED,
    SourceFindings,
    changed_settings,
    infrastructure_effects,
    table_effects,
)

FILE = """\
version: 1
name: shop
source: {database: shop}
tables:
  public.orders:
    key: [id]
    columns: {id: int, note: text}
  public.carts: {key: [id], columns: {id: int}}
derived:
  notes: {sql: "SELECT id, note FROM orders_current", key: [id]}
"""


@pytest.fixture
def plan(tmp_path: Path):
    def load(*changes: tuple[str, str]) -> Plan:
        text = FILE
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        file = tmp_path / "shop.yaml"
        file.write_text(text)
        return load_plan(file)

    return load


def effects(before: Plan | None, after: Plan, **found) -> dict[str, tuple[str, str]]:
    change = compare(before, after)
    change = change.found((), found.get("read_again", {}))
    if found.get("new_epoch"):
        change = change.all_snapshotted()
    result = table_effects(before, after, change, SourceFindings(**found))
    return {each.table: (each.effect, each.reason) for each in result}


def test_a_new_lake_loads_every_table(plan):
    found = effects(None, plan())
    assert {name: effect for name, (effect, _) in found.items()} == {
        "orders": LOAD,
        "carts": LOAD,
        "notes": REWRITE,
    }


def test_an_equal_file_changes_nothing(plan):
    assert effects(plan(), plan()) == {"orders": (UNCHANGED, ""), "carts": (UNCHANGED, "")}
    assert infrastructure_effects(plan(), plan()) == changed_settings(plan(), plan()) == []


@pytest.mark.parametrize(
    ("old", "new", "effect", "named"),
    [
        ("note: text", "note: text, total: int", LOAD_AGAIN, "new columns: total"),
        ("id: int, note: text", "id: bigint, note: text", COLUMNS, "no row is read"),
        ("    key: [id]", "    apply: scheduled\n    key: [id]", SETTINGS, "changed: apply"),
        (
            "    key: [id]",
            "    partition_by: [id]\n    key: [id]",
            SETTINGS,
            "the state keeps the partitions",
        ),
    ],
)
def test_a_changed_table(plan, old, new, effect, named):
    found = effects(plan(), plan((old, new)))
    assert (found["orders"][0], named in found["orders"][1]) == (effect, True)
    assert found["carts"] == (UNCHANGED, "")


def test_tables_that_join_and_leave(plan):
    after = plan(("public.carts: {key: [id]", "public.lines: {key: [id]"))
    found = effects(plan(), after)
    assert (found["lines"][0], found["carts"][0]) == (LOAD, STOP)
    parts = {(p["change"], p["kind"], p["name"]) for p in infrastructure_effects(plan(), after)}
    assert parts == {
        ("add", "topic", "shop.public.lines"),
        ("remove", "topic", "shop.public.carts"),
    }


def test_reasons_of_the_source(plan):
    again = effects(plan(), plan(), read_again={"public.carts": "its relation has changed"})
    assert again == {
        "orders": (UNCHANGED, ""),
        "carts": (LOAD_AGAIN, "its relation has changed"),
    }
    epoch = effects(plan(), plan(), new_epoch="the slot does not exist")
    reason = "a new epoch begins: the slot does not exist"
    assert epoch == {"orders": (LOAD_AGAIN, reason), "carts": (LOAD_AGAIN, reason)}


def test_a_derived_table_is_computed_again_if_its_query_changes(plan):
    after = plan(("SELECT id, note FROM", "SELECT id, upper(note) AS note FROM"))
    assert effects(plan(), after)["notes"][0] == REWRITE


def test_settings_are_named_by_their_keys(plan):
    after = plan(("tables:", "stream: {trigger_seconds: 60}\ntables:"))
    assert changed_settings(plan(), after) == [
        {"key": "stream.trigger_seconds", "before": 10, "after": 60}
    ]
