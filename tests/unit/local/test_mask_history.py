"""A mask that comes later must hide everything that the lake holds of its column, or be refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdclake.errors import InputError
from cdclake.local.file_forecast import forecast_against
from cdclake.local.mask_history import add_to_history
from cdclake.plan import Column, Plan, Table
from cdclake.polling import Polling

Masking = dict[str, object]
CLEAR: Masking = {}
HASH: Masking = {"mask": "hash"}
CUT_8: Masking = {"mask": "truncate", "truncate_to": 8}
CUT_4: Masking = {"mask": "truncate", "truncate_to": 4}
TOKEN: Masking = {"mask": "token"}
REDACT: Masking = {"mask": "redact"}
NULL: Masking = {"mask": "null"}
MONTH: Masking = {"mask": "month"}
GONE = None


def plan(mask: Masking | None, name: str = "mail", *earlier: str) -> Plan:
    """A table with a column that is declared so; without it for None."""
    columns = [Column(source="id", name="id", type="bigint")]
    if mask is not None:
        column = Column(source=name, name="mail", type="text", renamed_from=earlier)
        columns.append(replace(column, **mask))  # type: ignore[arg-type]
    table = Table(
        schema="public", table="t", name="t", topic="x.public.t", key=("id",),
        columns=tuple(columns),
    )  # fmt: skip
    return Plan(name="x", source_database="d", lake_database="l", tables=(table,))


def by_polls(plan: Plan) -> Plan:
    """The same plan with its tables polled, not streamed."""
    polling = Polling(by="id", every="rate(5 minutes)")
    polled = tuple(replace(table, delivery="poll", polling=polling) for table in plan.tables)
    return replace(plan, tables=(), polled=polled)


def taken_up(*plans: Plan) -> None:
    """Each `up` in turn, on one lake."""
    history: dict[str, dict[str, list[str]]] = {}
    streamed = None
    for each in plans:
        history, streamed = add_to_history(history, streamed, each), each


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *((CLEAR, HASH), (CLEAR, CUT_4), (CUT_8, CUT_4), (CUT_4, HASH), (CUT_4, TOKEN)),
        *((HASH, REDACT), (TOKEN, NULL), (REDACT, NULL), (CLEAR, MONTH), (MONTH, NULL)),
    ],
)
@pytest.mark.parametrize("between", [[], [plan(GONE)], [plan(GONE), plan(GONE)]])
def test_a_mask_that_hides_more_is_refused_also_after_the_column_was_gone(
    before: Masking, after: Masking, between: list[Plan]
) -> None:
    with pytest.raises(InputError) as refused:
        taken_up(plan(before), *between, plan(after))
    assert "public.t: column 'mail' is now masked" in refused.value.message
    for command in ("`cdclake down --purge`", "`cdclake up FILE`"):
        assert command in (refused.value.remedy or "")


@pytest.mark.parametrize(
    "plans",
    [
        [by_polls(plan(CLEAR)), by_polls(plan(HASH))],
        [by_polls(plan(CLEAR)), plan(HASH)],
        [plan(CLEAR), by_polls(plan(HASH))],
        [by_polls(plan(CLEAR)), plan(GONE), by_polls(plan(GONE)), plan(CUT_4)],
    ],
)
def test_polls_store_clear_text_too(plans: list[Plan]) -> None:
    with pytest.raises(InputError, match=r"public[.]t: column 'mail' is now masked"):
        taken_up(*plans)


def test_a_table_that_is_polled_later_keeps_its_mask() -> None:
    taken_up(plan(HASH), by_polls(plan(HASH)), plan(HASH))
    taken_up(by_polls(plan(HASH)), by_polls(plan(CUT_4)))


def test_the_message_names_the_mask_and_what_the_lake_holds() -> None:
    with pytest.raises(InputError, match="masked with `hash`, but the lake has stored it in clear"):
        taken_up(plan(CLEAR), plan(HASH))
    with pytest.raises(InputError, match=r"`truncate\(4\)`, but .* stored it with `truncate\(8\)`"):
        taken_up(plan(HASH), plan(CUT_8), plan(CUT_4))


def test_plan_says_what_the_lake_holds_rather_than_that_a_mask_changed() -> None:
    expected = "mask what a lake of shop.yaml already holds.*the lake has stored it in clear"
    with pytest.raises(InputError, match=expected):
        forecast_against(plan(HASH), "", None, (), (plan(CLEAR), "shop.yaml"))


def test_a_table_that_left_with_clear_text_does_not_rejoin_masked() -> None:
    empty = replace(plan(GONE), tables=())
    with pytest.raises(InputError):
        taken_up(plan(CLEAR), empty, plan(HASH))


def test_a_renamed_column_is_the_same_column() -> None:
    with pytest.raises(InputError):
        taken_up(plan(CLEAR), plan(HASH, "email", "mail"))
    with pytest.raises(InputError):
        taken_up(plan(CLEAR, "email", "mail"), plan(GONE), plan(HASH, "mail"))


def test_a_mask_from_the_beginning_may_stay_go_and_come_again() -> None:
    taken_up(plan(HASH), plan(HASH), plan(GONE), plan(HASH))
    taken_up(plan(GONE), plan(HASH))  # a column that the lake never had
    taken_up(plan(HASH), plan(GONE), plan(CUT_4), plan(GONE), plan(CUT_8))


def test_a_lake_without_a_history_has_that_of_its_plan() -> None:
    with pytest.raises(InputError):
        add_to_history({}, plan(CLEAR), plan(HASH))
    assert add_to_history({}, plan(HASH), plan(HASH)) == {
        "public.t": {"id": [""], "mail": ["hash"]}
    }
