"""Effects of a changed pipeline file on tables, infrastructure and settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdclake.cli.plan import render
from cdclake.config.resolve import load_plan
from cdclake.local.source_forecast import SourceForecast
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
    forecast,
    infrastructure_effects,
    rebuild_advice,
    table_effects,
)
from cdclake.postgres.server import settings_warnings
from tests.unit.postgres.tables import server

FILE = """\
version: 1
name: shop
source: {database: shop}
tables:
  public.orders:
    key: [id]
    columns: {id: int, note: text}
  public.sales:
    key: [id]
    columns: {id: int, status: text, total: "numeric(12,2)", mail: text, old: {exclude: true}}
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
    change = change.adapted((), found.get("read_again", {}))
    if found.get("new_epoch"):
        change = change.all_snapshotted()
    result = table_effects(before, after, change, SourceFindings(**found))
    return {each.table: (each.effect, each.reason) for each in result}


def forecast_of(before: Plan, after: Plan):
    found = forecast(before, after, compare(before, after), SourceFindings())
    unknown = {"rows": None, "bytes": None}
    return {**found, "tables": [{**table, **unknown} for table in found["tables"]]}


def test_a_widened_column_whose_larger_values_are_null_needs_a_rebuild(plan):
    nulled = (
        "source: {database: shop}",
        "policies: {not_representable: null}\n" + "source: {database: shop}",
    )
    wider = ("numeric(12,2)", "numeric(14,2)")
    _, reason = effects(plan(nulled), plan(nulled, wider))["sales"]
    assert reason.startswith("no row is read; run `cdclake job rebuild_tables --table sales`")
    assert effects(plan(), plan(wider))["sales"] == (COLUMNS, "no row is read")
    before, after = plan(nulled), plan(nulled, wider)
    assert [*rebuild_advice(before, after, compare(before, after))] == ["sales"]
    assert rebuild_advice(plan(), plan(wider), compare(plan(), plan(wider))) == {}


def test_a_new_lake_loads_every_table(plan):
    found = effects(None, plan())
    assert {name: effect for name, (effect, _) in found.items()} == {
        "orders": LOAD,
        "sales": LOAD,
        "carts": LOAD,
        "notes": REWRITE,
    }


def test_an_equal_file_changes_nothing(plan):
    tables = ("orders", "sales", "carts")
    assert effects(plan(), plan()) == dict.fromkeys(tables, (UNCHANGED, ""))
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


READS = {"tables": 0, "rows": 0, "bytes": 0}
WIDER = ("numeric(12,2)", "numeric(14,2)")
NOTE_FOR_STATUS = ("status: text", "note: text")


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ([WIDER], "columns     public.sales: total numeric(12,2) -> numeric(14,2); no row is read"),
        (
            [("status: text, ", "")],
            "columns     public.sales: - status (its values stay); no row is read",
        ),
        (
            [("status: text", "status: {exclude: true}")],
            "columns     public.sales: - status (excluded; its values stay); no row is read",
        ),
        (
            [NOTE_FOR_STATUS, WIDER],
            "load again  public.sales: + note text, total numeric(12,2) -> numeric(14,2),"
            " - status (its values stay); new columns: note",
        ),
        (
            [("mail: text", "email: {type: varchar(9), renamed_from: mail}")],
            "columns     public.sales: mail renamed to email, email text -> varchar(9); no row is"
            " read",
        ),
        (
            [("old: {exclude: true}", "new: {exclude: true}")],
            "columns     public.sales: - new (excluded), old no longer excluded; no row is read",
        ),
        (
            [("status: text, total", "total"), ("mail: text", "mail: text, status: text")],
            "columns     public.sales: columns in another order; no row is read",
        ),
        (
            [NOTE_FOR_STATUS, ("public.sales:", "public.sales:\n    apply: scheduled")],
            "load again  public.sales: + note text, - status (its values stay); new columns: note;"
            " changed: apply",
        ),
    ],
)
def test_each_changed_column_is_named(plan, capsys, changes, shown):
    found = forecast_of(plan(), plan(*changes))
    render({**found, "compared_with": "old.yaml", "new_tables": [], "reads": READS, "warnings": []})
    assert shown in capsys.readouterr().out.replace(" (rows not known, size not known)", "")


def test_changed_columns_are_fields(plan):
    found = forecast_of(plan(), plan(NOTE_FOR_STATUS, WIDER))
    sales = next(table for table in found["tables"] if table["table"] == "sales")
    assert json.loads(json.dumps(sales["columns"])) == [
        {"change": "add", "column": "note", "before": None, "after": "text"},
        {"change": "type", "column": "total", "before": WIDER[0], "after": WIDER[1]},
        {"change": "remove", "column": "status", "before": "text", "after": None},
    ]


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
        "sales": (UNCHANGED, ""),
        "carts": (LOAD_AGAIN, "its relation has changed"),
    }
    epoch = effects(plan(), plan(), new_epoch="the slot does not exist")
    reason = "a new epoch begins: the slot does not exist"
    assert epoch == dict.fromkeys(("orders", "sales", "carts"), (LOAD_AGAIN, reason))


def test_a_derived_table_is_computed_again_if_its_query_changes(plan):
    after = plan(("SELECT id, note FROM", "SELECT id, upper(note) AS note FROM"))
    assert effects(plan(), after)["notes"][0] == REWRITE


def test_another_format_of_a_derived_table_needs_its_table_dropped(plan):
    after = plan(("key: [id]}", "key: [id], format: parquet}"))
    effect, reason = effects(plan(), after)["notes"]
    assert effect == REWRITE
    assert reason.startswith("its format becomes parquet; drop its table first, or rename it")


def test_settings_are_named_by_their_keys(plan):
    after = plan(("tables:", "stream: {trigger_seconds: 60}\ntables:"))
    assert changed_settings(plan(), after) == [
        {"key": "stream.trigger_seconds", "before": 10, "after": 60}
    ]


def test_the_unlimited_wal_of_an_existing_source_is_a_warning(plan, capsys):
    found = forecast(plan(), plan(), compare(plan(), plan()), SourceFindings())
    warnings = settings_warnings(server(slot_wal_mb=-1))
    answered = SourceForecast(was_asked=True, warnings=warnings).completed(found)
    render({**answered, "compared_with": "old.yaml"})
    shown = capsys.readouterr().out
    assert "nothing changes\n" in shown
    assert "warning: server: max_slot_wal_keep_size is -1 (unlimited)" in shown
    assert SourceForecast(was_asked=True).completed(found)["warnings"] == []


POLLED = """
  public.logins:
    capture: {poll: {by: at, every: rate(1 hour), deletes: none}}
    key: [id]
    columns: {id: int, at: timestamptz, mail: text}
"""


@pytest.mark.parametrize(
    ("changed", "effect", "reason"),
    [
        (("mail: text}", "mail: text, note: text}"), LOAD_AGAIN, "the next poll reads every row"),
        (("tables:", "policies: {not_representable: 'null'}\ntables:"), LOAD_AGAIN, "every row"),
        (("rate(1 hour)", "rate(2 hours)"), SETTINGS, "changed: polling"),
        (("version: 1", "version: 1  # same"), UNCHANGED, ""),
    ],
)
def test_polls_that_read_every_row_are_foreseen(plan, changed, effect, reason) -> None:
    added = ("derived:", f"{POLLED.strip(chr(10))}\nderived:")
    before, after = plan(added), plan(added, changed)
    found = table_effects(before, after, compare(before, after), SourceFindings())
    [polled] = [each for each in found if each.source == "public.logins"]
    assert polled.effect == effect, polled
    assert reason in polled.reason, polled
