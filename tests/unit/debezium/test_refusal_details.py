"""Every reason of a refused event, with column and value."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cdclake.debezium.refusal_details import RefusalDetails
from cdclake.plan import Column, Plan, Table
from cdclake.quality_rule import QualityRule, ValueLimit

COLUMNS = (
    Column(source="id", name="id", type="bigint"),
    Column(source="n", name="n", type="numeric(5,2)"),
    Column(source="v", name="v", type="integer"),
    Column(source="s", name="s", type="text"),
)
TABLE = Table(
    schema="public",
    table="rows",
    name="rows",
    topic="shop.public.rows",
    key=("id",),
    columns=COLUMNS,
    checks=(
        QualityRule(
            name="in(s)", kind="rows", limit=ValueLimit(column="s", test="in", allowed=("new",))
        ),
    ),
)
PLAN = Plan(name="shop", source_database="shop", lake_database="lake", tables=(TABLE,))
KEY = b'{"id": 1}'


def event(**row: Any) -> bytes:
    source = {"sequence": '["1","2"]', "lsn": 2, "txId": 3, "ts_us": 4}
    after = {"id": 1, "n": "1.00", "v": 1, "s": "new", **row}
    return json.dumps({"op": "c", "after": after, "source": source, "cdc_epoch": 1}).encode()


def found(value: bytes, table: Table = TABLE, key: bytes | None = KEY) -> list[tuple[Any, ...]]:
    details = RefusalDetails(table, PLAN).reasons(key, value)
    return [(detail.reason.split(":")[0], detail.column, detail.value) for detail in details]


def test_an_accepted_event_has_no_reason() -> None:
    assert found(event()) == []


def test_all_reasons_are_found_at_once() -> None:
    assert found(event(n="NAN", v="many", s="odd")) == [
        ("NOT_REPRESENTABLE", "n", "NaN"),
        ("WRONG_TYPE", "v", "many"),
        ("BROKEN_RULE", "s", "odd"),
    ]


@pytest.mark.parametrize(
    ("key", "code"), [(b"{", "UNREADABLE_KEY"), (b'{"id": 2}', "KEY_MISMATCH")]
)
def test_a_reason_of_the_whole_event_comes_first(key: bytes, code: str) -> None:
    assert found(event(n="NaN"), key=key) == [
        (code, None, None),
        ("NOT_REPRESENTABLE", "n", "NaN"),
    ]


def test_an_unsent_value_is_a_reason_only_if_a_rule_may_withhold() -> None:
    whole, sent = replace(TABLE, replica_identity="full"), event(s=PLAN.placeholder)
    assert found(sent, whole) == [("UNSENT_VALUE", "s", None)]
    wrong = event(s=PLAN.placeholder, v="many")
    assert found(wrong, replace(whole, checks=())) == [("WRONG_TYPE", "v", "many")]
    assert found(sent, replace(whole, checks=())) == []


def test_the_value_of_a_masked_column_is_not_shown() -> None:
    masked = replace(
        TABLE, columns=(*COLUMNS[:3], Column(source="s", name="s", type="text", mask="hash"))
    )
    [(code, column, value)] = found(event(s="secret"), masked)
    assert (code, column, value) == ("BROKEN_RULE", "s", "(masked)")
    assert "secret" not in str(RefusalDetails(masked, PLAN).reasons(KEY, event(s="secret")))


def test_a_long_value_is_cut() -> None:
    [(_, _, value)] = found(event(s="x" * 500))
    assert value == "x" * 100 + "..."


def test_the_key_is_read_from_the_row_without_a_key() -> None:
    details = RefusalDetails(TABLE, PLAN)
    assert details.key(None, event()) == details.key(KEY, None) == {"id": 1}
    assert details.key(b"{", b"{") is None
