"""Differences of two plans, and which of them are refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.errors import APPLY_FILE, START_AGAIN, InputError
from cdclake.local import joining_tables
from cdclake.local.joining_tables import (
    join_tables,
    refuse_without_sweep,
    request_snapshots,
)
from cdclake.plan import Column, Plan, Table
from cdclake.plan_diff import PlanDiff, compare, compare_stored
from cdclake.rereading import refuse_rereading


def column(name: str, kind: str = "text", *earlier: str, **changes: str) -> Column:
    lake_name = (earlier[0] if earlier else name).lower()
    made = Column(source=name, name=lake_name, type=kind, renamed_from=earlier)
    return replace(made, **changes)  # type: ignore[arg-type]


def table(*columns: Column, name: str = "t") -> Table:
    return Table(
        schema="public", table=name, name=name, topic=f"x.public.{name}", key=("id",),
        columns=(column("id", "bigint"), *columns),
    )  # fmt: skip


def plan(*tables: Table) -> Plan:
    return Plan(name="x", source_database="d", lake_database="l", tables=tables)


def change(before: Table, after: Table) -> PlanDiff:
    return compare(plan(before), plan(after))


def refused(before: Table, after: Table) -> str:
    with pytest.raises(InputError) as error:
        change(before, after)
    return error.value.message


MAIL = table(column("mail"))


def test_an_equal_table_is_kept_and_nothing_follows() -> None:
    found = change(MAIL, MAIL)
    assert (found.kept, found.reshaped, found.widened, found.renamed) == ((MAIL,), (), (), ())
    assert not found.changes_tables


def test_a_column_may_go_without_anything_read_again() -> None:
    found = change(MAIL, table())
    assert (found.reshaped, found.widened, found.renamed) == ((table(),), (), ())


def test_a_column_that_comes_again_is_read_with_whatever_type() -> None:
    again = table(column("mail", "bigint"))
    found = change(table(), again)
    assert (found.widened, found.reshaped) == ((again,), (again,))


def test_a_renamed_column_is_read_again_only_where_its_new_name_came_first() -> None:
    renamed = table(column("email", "text", "mail"))
    found = change(MAIL, renamed)
    assert (found.renamed, found.widened) == ((renamed,), ())
    assert found.adapted([], []).widened == ()
    late = found.adapted(["public.t"], [])
    assert (late.widened, late.changes_tables) == ((renamed,), True)
    assert change(renamed, renamed).adapted(["public.t"], []).widened == ()


def test_an_earlier_name_that_the_lake_does_not_have_is_refused_if_a_column_leaves() -> None:
    before = table(column("note"), column("total", "integer"))
    misspelt = table(column("amount", "integer", "totl"), column("note"))
    said = refused(before, misspelt)
    assert "public.t: no column of the lake has an earlier name of 'amount' (totl)" in said
    assert "write `amount: {type: integer, renamed_from: total}` if it is 'total'" in said
    assert change(before, table(*before.columns[1:], column("amount", "integer", "totl"))).widened
    excluded = replace(before, columns=before.columns[:2], excluded=("totl",))
    assert change(excluded, table(column("amount", "integer", "totl"))).widened
    assert change(before, replace(misspelt, excluded=("total",))).widened


def test_a_table_that_the_publication_had_lost_joins_again() -> None:
    other = table(name="other")
    found = compare(plan(MAIL, other), plan(MAIL, other)).adapted([], ["public.t"])
    assert (found.joining, found.changes_tables) == ((MAIL,), True)
    assert compare(None, plan(MAIL)).adapted([], ["public.t"]).joining == (MAIL,)


def test_a_column_that_takes_anothers_name_in_the_lake_is_refused() -> None:
    said = refused(MAIL, table(column("Mail")))
    assert "would take the name mail" in said
    assert "`Mail: {type: text, renamed_from: mail}`" in said


def test_every_earlier_name_stays_in_the_file() -> None:
    once = table(column("email", "text", "mail"))
    twice = table(column("post", "text", "mail", "email"))
    assert change(once, twice).renamed == (twice,)
    said = refused(once, table(column("post", "text", "email")))
    assert "write `renamed_from: [mail, email]`" in said
    assert "write `renamed_from: [mail]`" in refused(once, table(column("email")))
    said = refused(table(column("email")), table(column("email", "text", "mail")))
    assert "remove its `renamed_from`" in said


def test_a_type_that_cannot_become_the_new_one_is_refused_with_the_way_there() -> None:
    said = refused(MAIL, table(column("mail", "bigint")))
    assert "changed from text to bigint" in said
    assert "wait until the table streams without lag" in said
    assert "add it again with its new type" in said and "cdc_dropped_mail" in said


def test_a_key_of_another_type_starts_again_under_another_name() -> None:
    retyped = replace(MAIL, columns=(column("id", "uuid"), column("mail")))
    with pytest.raises(InputError) as error:
        change(MAIL, retyped)
    assert f"changed from bigint to uuid; a key keeps its types: {START_AGAIN}" in (
        error.value.message
    )
    assert "for a type" not in error.value.remedy
    compare_stored(plan(), plan(replace(retyped, name="t_2")), removed=[MAIL])


def test_a_table_whose_columns_are_mended_is_asked_to_go_on_after_its_plan() -> None:
    written: list[str] = []
    control = SimpleNamespace(
        read=lambda _: None, write=lambda name, content: written.append(f"{name} {content}")
    )
    lake: Any = SimpleNamespace(control=control)
    join_tables(lake, change(MAIL, table()), write_plan=lambda: written.append("plan"))
    assert written == ["plan", "resume/t.json {'mended': 'columns'}"]
    written.clear()
    join_tables(lake, change(MAIL, MAIL), write_plan=lambda: written.append("plan"))
    assert written == ["plan"]


def test_a_table_keeps_the_way_by_which_it_is_delivered() -> None:
    by_firehose = replace(MAIL, delivery="firehose")
    assert "`delivery` changed to firehose" in refused(MAIL, by_firehose)
    assert "`delivery` changed to stream" in refused(by_firehose, MAIL)
    shared = replace(by_firehose, topic="x.sales")
    assert "its topic changed from x.public.t to x.sales" in refused(by_firehose, shared)


LAKE: Any = SimpleNamespace(dsn="dsn")
DELIVERED = replace(MAIL, delivery="firehose")


def test_a_firehose_table_rejoins_only_with_a_new_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining_tables, "last_position", lambda *_: "0" * 30)
    joining = PlanDiff(is_first=False, joining=(table(name="other"), DELIVERED))
    with pytest.raises(InputError, match="add it under another `name:`"):
        refuse_without_sweep(LAKE, joining)
    refuse_without_sweep(LAKE, joining.all_snapshotted())
    refuse_without_sweep(LAKE, PlanDiff(is_first=False, joining=(MAIL,)))
    monkeypatch.setattr(joining_tables, "last_position", lambda *_: None)
    refuse_without_sweep(LAKE, joining)


LINES = table(name="Order Lines")


def test_a_table_that_a_signal_cannot_name_joins_only_with_a_new_epoch() -> None:
    joining = PlanDiff(is_first=False, joining=(table(name="other"), LINES))
    with pytest.raises(InputError, match=r"public\.Order Lines: its name has a blank"):
        refuse_rereading(plan(), joining)
    refuse_rereading(plan(), joining.all_snapshotted())
    refuse_rereading(None, replace(joining, is_first=True))
    refuse_rereading(plan(LINES), PlanDiff(is_first=False, kept=(LINES,)))


@pytest.mark.parametrize(
    ("after", "renamed", "lines"),
    [
        (replace(LINES, columns=(*LINES.columns, column("note"))), (), "`note: {exclude: true}`"),
        (
            replace(LINES, columns=(*LINES.columns, column("to do"), column("a"))),
            (),
            "`'to do': {exclude: true}`, `a: {exclude: true}`",
        ),
        (replace(LINES, columns=(column("n", "bigint", "id"),)), ("public.Order Lines",), ""),
    ],
)
def test_new_columns_of_a_table_that_cannot_be_read_again_are_refused(
    after: Table, renamed: tuple[str, ...], lines: str
) -> None:
    """A column that was renamed too early needs its values, too; one of the key must flow."""
    before = plan(LINES)
    with pytest.raises(InputError) as error:
        refuse_rereading(before, compare(before, plan(after)).adapted(renamed, ()))
    assert f"{after.columns[-1].source!r}, and its name has a blank" in error.value.message
    assert error.value.remedy.startswith(f"write {lines}; or rename" if lines else "rename it")
    refuse_rereading(before, compare(before, plan(after)).all_snapshotted())


def test_a_column_renamed_in_advance_needs_no_values() -> None:
    renamed = replace(LINES, columns=(*LINES.columns[:1], column("email", "text", "mail")))
    before = plan(replace(LINES, columns=(*LINES.columns[:1], column("mail"))))
    refuse_rereading(before, compare(before, plan(renamed)))


def record_requests(
    monkeypatch: pytest.MonkeyPatch, known: str | None, *being_read: str
) -> list[Any]:
    """Record the requests and signals of tables whose newest position is `known`."""
    asked: list[Any] = []

    def request_rejoins(known: dict[str, str | None]) -> dict[str, str]:
        asked.append(known)
        return {name: f"id of {name}" for name in known}

    def signal(_: str, tables: Any, request: str | None = None) -> None:
        asked.append(([each.name for each in tables], request))

    operations = SimpleNamespace(
        request_rejoins=request_rejoins,
        backend=SimpleNamespace(tables_being_read=lambda: frozenset(being_read)),
    )
    monkeypatch.setattr(joining_tables, "last_position", lambda *_: known)
    monkeypatch.setattr(joining_tables, "local_operations", lambda _: operations)
    monkeypatch.setattr(joining_tables, "signal_snapshot", signal)
    return asked


def test_a_widened_table_that_is_being_read_gets_no_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The end of that read would end the request, and the rows read before it would be deleted."""
    asked = record_requests(monkeypatch, "p", MAIL.source)
    widened = (MAIL, table(name="wide"))
    request_snapshots(LAKE, PlanDiff(is_first=False, widened=widened, kept=widened))
    assert asked == [{"wide": "p"}, (["t"], None), (["wide"], "id of wide")]


@pytest.mark.parametrize(
    ("known", "kept", "requested"),
    [
        (None, False, {"wide": None}),
        (None, True, {"t": None, "wide": None}),
        ("p", False, {"t": "p", "wide": "p"}),
        ("p", True, {"t": "p", "wide": "p"}),
    ],
)
def test_tables_with_rows_are_signalled_under_their_requests(
    monkeypatch: pytest.MonkeyPatch, known: str | None, kept: bool, requested: dict[str, str | None]
) -> None:
    """The stream may not have read any event of a table that the lake has."""
    asked = record_requests(monkeypatch, known)
    wide, delivered = table(name="wide"), replace(table(name="d"), delivery="firehose")
    widened = (wide, delivered)
    change = PlanDiff(
        is_first=False,
        joining=(MAIL,),
        widened=widened,
        kept=(*widened, *((MAIL,) if kept else ())),
    )
    request_snapshots(LAKE, change)
    bare = [name for name in ("t", "d") if name not in requested]
    signals = [([name], f"id of {name}") for name in ("t", "wide") if name in requested]
    assert asked == [requested, (bare, None), *signals]


def test_what_a_published_plan_lacked_is_read_again() -> None:
    """An `up` published a plan and died; then its edit was undone."""
    other = table(name="other")
    both = plan(MAIL, other)
    same = compare(both, both)
    assert same.since([both]) == same.since([]) == same
    found = same.since([plan(table(), other)])
    assert (found.widened, found.reshaped, found.joining) == ((MAIL,), (MAIL,), ())
    found = same.since([plan(MAIL), both])
    assert (found.widened, found.joining, found.changes_tables) == ((), (other,), True)
    assert found.adapted([], ["public.other"]).joining == (other,)
    assert compare(None, both).since([plan(MAIL)]).joining == both.tables


@pytest.mark.parametrize("unread", [DELIVERED, LINES])
def test_an_undone_removal_of_an_unreadable_table_is_accepted(unread: Table) -> None:
    """It cannot join again; that the publication omitted it is reported."""
    both = plan(unread, table(name="other"))
    same = compare(both, both)
    assert same.since([plan(table(name="other"))]) == same


def test_another_pipeline_is_sent_to_another_home() -> None:
    with pytest.raises(InputError) as error:
        compare(plan(MAIL), replace(plan(MAIL), name="y"))
    assert error.value.remedy.startswith("stream this file in another lake with `CDCLAKE_HOME=")


def test_a_type_that_cannot_follow_has_one_remedy() -> None:
    old, new = table(column("fee", "money")), table(column("fee", "numeric(12,2)"))
    with pytest.raises(InputError) as error:
        change(old, new)
    assert f"remove it from the file, {APPLY_FILE}" in error.value.message
    assert error.value.remedy.startswith("for a type, remove the column from the file")
