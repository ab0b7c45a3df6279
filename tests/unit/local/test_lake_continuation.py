"""A table that comes again, or takes a name, goes on with what the lake has, or is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cdclake.derived_table import DerivedTable
from cdclake.errors import InputError
from cdclake.local.lake.lake import LakeState
from cdclake.local.lake_continuation import continued
from cdclake.local.lake_forecast import forecast_up
from cdclake.local.process.home import Home
from cdclake.plan import Column, Plan, Table
from cdclake.polling import Polling
from cdclake.puts.put_table import PutStream, PutTable
from tests.recorded.firehose import stream_of


def table(total: str = "numeric(10,2)", key: str = "id", schema: str = "public") -> Table:
    kinds = {"id": "bigint", "other_id": "bigint", "total": total}
    return Table(
        schema=schema, table="orders", name="orders", topic=f"x.{schema}.orders", key=(key,),
        columns=tuple(Column(source=name, name=name, type=kind) for name, kind in kinds.items()),
    )  # fmt: skip


OTHER = replace(table(), table="other", name="other", topic="x.public.other")
MOVED = table(schema="crm")


def plan(*tables: Table) -> Plan:
    return Plan(name="x", source_database="d", lake_database="l", tables=(*tables, OTHER))


def by_polls(plan: Plan) -> Plan:
    polling = Polling(by="id", every="rate(5 minutes)")
    polled = tuple(replace(each, delivery="poll", polling=polling) for each in plan.tables)
    return replace(plan, tables=(), polled=polled)


def after_up(*plans: Plan) -> LakeState:
    """Return the state of a lake after an `up` with each plan in turn."""
    state = LakeState()
    for each in plans:
        applied, state = continued(state, each, "")
        state = replace(state, plan=applied.to_json())
    return state


def refused(*plans: Plan) -> str:
    with pytest.raises(InputError) as error:
        continued(after_up(*plans[:-1]), plans[-1], "")
    assert error.value.exit_code == 2
    return error.value.message


@pytest.mark.parametrize("between", [[plan()], [plan(), plan()]])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (table(key="other_id"), "the key changed from ['id'] to ['other_id']"),
        (table("numeric(12,4)"), "'total' changed from numeric(10,2) to numeric(12,4)"),
        (replace(table(), deletes="soft"), "`deletes` changed to soft"),
    ],
)
def test_a_removed_table_keeps_its_key_and_types(
    between: list[Plan], changed: Table, message: str
) -> None:
    said = refused(plan(table()), *between, plan(changed))
    assert "public.orders: the lake may have orders from an earlier `cdclake up`" in said
    assert "write `name: orders_2`" in said
    assert message in said


def test_polled_tables_are_remembered_too() -> None:
    changed = plan(table(key="other_id"))
    for again in (changed, by_polls(changed)):
        assert "the key changed" in refused(by_polls(plan(table())), by_polls(plan()), again)
    assert "the key changed" in refused(by_polls(plan(table())), changed)


def test_a_failed_up_counts() -> None:
    """It may have created the table, although the state has the plan before it."""
    before = after_up(plan())
    _, failed = continued(before, plan(table()), "")
    with pytest.raises(InputError, match="the key changed"):
        continued(failed, plan(table(key="other_id")), "")


def test_a_removed_table_may_come_again_as_it_was() -> None:
    after_up(plan(table()), plan(), plan(table()), plan(), plan(table("numeric(14,2)")))


def test_a_removed_table_keeps_the_type_that_the_source_widened() -> None:
    state = after_up(plan(table("numeric(14,2)")), plan())
    applied, _ = continued(state, plan(table()), "")
    assert applied.tables[0] == table("numeric(14,2)")


def test_another_name_starts_again_with_any_key() -> None:
    other_name = replace(table(key="other_id"), name="orders_2")
    after_up(plan(table()), plan(), plan(other_name), plan(other_name), plan(), plan(other_name))
    assert "write `name: orders_3`" in refused(
        plan(table()), plan(), plan(other_name), plan(), plan(other_name, MOVED)
    )


@pytest.mark.parametrize("between", [[], [plan()], [plan(), plan()]])
def test_another_source_does_not_take_the_name_of_a_stored_table(between: list[Plan]) -> None:
    said = refused(plan(table()), *between, plan(MOVED))
    assert "crm.orders: the lake has the rows of public.orders under the name orders" in said
    assert "write `name: orders_2` below crm.orders" in said
    after_up(plan(table()), *between, plan(replace(MOVED, name="orders_2")))


@pytest.mark.parametrize("between", [[], [plan()]])
def test_a_table_does_not_take_the_name_of_a_stored_changelog(between: list[Plan]) -> None:
    name = "orders_changes"
    changes = replace(OTHER, table=name, name=name, topic=f"x.public.{name}")
    said = refused(plan(table()), *between, plan(changes))
    assert f"public.{name}: the lake has the rows of public.orders under the name orders" in said
    assert f"write `name: {name}_2`" in said
    first = replace(changes, table="x", name="orders_changes_changes")
    after_up(plan(table()), *between, plan(first))


def derived(name: str) -> DerivedTable:
    return DerivedTable(
        name=name, sql="SELECT id FROM other_current", key=("id",), schedule="rate(1 hour)",
        sources=("other",),
    )  # fmt: skip


@pytest.mark.parametrize("between", [[], [plan()], [plan(), plan()]])
def test_a_derived_table_does_not_take_the_name_of_a_stored_one(between: list[Plan]) -> None:
    for name in ("orders", "orders_changes"):
        said = refused(plan(table()), *between, replace(plan(), derived=(derived(name),)))
        assert f"derived.{name}: the lake may have the rows of public.orders in {name}" in said
    after_up(plan(table()), *between, replace(plan(), derived=(derived("orders_2"),)))


@pytest.mark.parametrize("between", [[], [plan()], [plan(), plan()]])
def test_a_table_does_not_take_the_name_of_a_stored_derived_one(between: list[Plan]) -> None:
    for name in ("orders", "orders_changes"):
        first = replace(plan(), derived=(derived(name),))
        said = refused(first, *between, plan(table()))
        assert f"public.orders: the lake may have the rows of derived.{name} in {name}" in said
        after_up(first, *between, plan(replace(table(), name="orders_2")), first)


def appending(*names: str, base: Plan | None = None) -> Plan:
    """Return the plan with one put stream, which routes its records to these tables."""
    stream = stream_of(OTHER, name="events", source="direct_put", topic="", tables=names)
    targets = tuple(PutTable(name=name, columns=()) for name in names)
    put = PutStream(stream=stream, targets=targets, route="kind", database="l")
    return replace(base or plan(), puts=(put,))


@pytest.mark.parametrize("between", [[], [plan()], [plan(), plan()]])
def test_a_put_table_does_not_take_the_name_of_a_stored_one(between: list[Plan]) -> None:
    for name in ("orders", "orders_changes"):
        said = refused(plan(table()), *between, appending(name))
        assert f"puts.events: the lake may have the rows of public.orders in {name}" in said
        first = replace(plan(), derived=(derived(name),))
        assert f"the rows of derived.{name} in {name}" in refused(first, *between, appending(name))
    after_up(plan(table()), *between, appending("orders_2"), appending("orders_2", "orders_3"))


@pytest.mark.parametrize("between", [[], [plan()], [appending("clicks"), plan()]])
def test_a_table_does_not_take_the_name_of_a_stored_put_table(between: list[Plan]) -> None:
    for name in ("orders", "orders_changes"):
        first = appending(name, "clicks")
        said = refused(first, *between, plan(table()))
        assert f"public.orders: the lake may have the rows of puts.events in {name}" in said
        said = refused(first, *between, replace(plan(), derived=(derived(name),)))
        assert f"derived.{name}: the lake may have the rows of puts.events in {name}" in said
        after_up(first, *between, plan(replace(table(), name="orders_2")), first)


def test_the_first_table_does_not_take_the_name_of_a_put_table() -> None:
    without = replace(plan(), tables=(), source_database="")
    first = appending("orders", base=without)
    assert "the rows of puts.events in orders" in refused(first, plan(table()))
    after_up(first, plan(replace(table(), name="orders_2")))
    after_up(first, replace(plan(table()), lake_database="l2"))


def test_plan_refuses_what_up_refuses(tmp_path: Path) -> None:
    home = Home(tmp_path)
    state = after_up(plan(table()), plan())
    state.save(home)
    file = tmp_path / "shop.yaml"
    file.write_text("version: 1\ntables:\n  public.other: {}\n  public.orders: {}\n")
    with pytest.raises(InputError, match=r"shop[.]yaml:4: public[.]orders: the key changed"):
        forecast_up(home, plan(table(key="other_id")), str(file), None, ())
    assert forecast_up(home, plan(table()), str(file), None, ())["ok"]
    lines = replace(OTHER, table="Order Lines", name="lines", topic="x.lines")
    with pytest.raises(InputError, match=r"public[.]Order Lines: its name has a blank"):
        forecast_up(home, plan(lines), str(file), None, ())


def test_a_lake_with_only_web_logs_takes_its_first_tables(tmp_path: Path) -> None:
    logs = replace(plan(), tables=(), source_database="")
    after_up(logs, plan(table()))
