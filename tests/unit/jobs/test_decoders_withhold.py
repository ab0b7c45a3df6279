"""Rules with `on: quarantine`: all three decoders withhold the same events."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.jobs.stream.changelog_columns import REFUSAL
from cdclake.plan import Plan, Table
from cdclake.quality_rule import QualityRule, ValueLimit
from tests.recorded.decoders import Kafka, fast_rows, firehose_row, slow_rows
from tests.unit.jobs.test_decoders_agree import ALL, agree, plan_of, record


def not_null(column: str) -> ValueLimit:
    return ValueLimit(column=column, test="not_null")


def one_of(column: str, *allowed: str) -> ValueLimit:
    return ValueLimit(column=column, test="in", allowed=allowed)


def within(column: str, low: str | None, high: str | None) -> ValueLimit:
    return ValueLimit(column=column, test="range", low=low, high=high)


def ruled(*limits: ValueLimit, **table: Any) -> tuple[Table, Plan]:
    """The table of all types, with these limits as rules."""
    checks = tuple(
        QualityRule(name=f"{limit.test}({limit.column})", kind="rows", limit=limit)
        for limit in limits
    )
    return plan_of(*ALL, checks=checks, **table)


def withheld(sent: Kafka, table: Table, plan: Plan) -> str | None:
    """The reason of all decoders to withhold the event, alone and within a block."""
    agree([sent], table, plan)
    agree([record(), sent, record(op="c")], table, plan)
    [row] = slow_rows([sent], table, plan)
    assert row is not None
    reason = row[REFUSAL]
    found = firehose_row(sent, 0, table, plan)
    assert found == reason if isinstance(reason, str) else isinstance(found, dict)
    return reason  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("limit", "field", "good", "bad"),
    [
        (not_null("s"), "s", ['""', '"x"'], ["null"]),
        (not_null("y"), "y", ['""'], ["null"]),
        (one_of("s", "new", "paid"), "s", ['"new"', "null"], ['"New"', '""', '"new "']),
        (one_of("b", "true"), "b", ["true", "null"], ["false"]),
        (one_of("i", "1", "3"), "i", ["1", "3"], ["2", "-1"]),
        (one_of("n", "12.3", "0"), "n", ['"12.30"', '"012.3"', '"-0.00"'], ['"12.31"']),
        (one_of("r", "0.1"), "r", ["0.1", "0.10000000"], ["0.10000001", "0.2"]),
        (one_of("t", "2026-01-31T10:00:00"), "t",
         ['"2026-01-31T10:00:00Z"', '"2026-01-31T10:00:00.000000Z"'],
         ['"2026-01-31T10:00:00.000001Z"']),
        (within("l", "0", "10"), "l", ["0", "10", "null"], ["-1", "11", "9223372036854775807"]),
        (within("d", "0", "10"), "d", ["0", "-0.0", "10.0"], ["10.000000000000002", "-1e-300"]),
        (within("n", "0", "99.99"), "n", ['"99.99"', '"99.990"'], ['"100"', '"-0.01"']),
        (within("s", "b", None), "s", ['"b"', '"é"', '"😀"'], ['"a"', '"B"']),
        (within("s", None, "\uffff"), "s", ['"z"', '"\uffff"'], ['"😀"']),
        (within("day", "1970-01-02", None), "day", ["1", "20000"], ["0", "-700000"]),
        (within("at", None, "1970-01-01T00:00:01"), "at", ["1000000", "-5"], ["1000001"]),
        (within("t", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-05:00"), "t",
         ['"0000-12-31T10:00:00Z"', '"+10000-01-01T04:59:59Z"'],
         ['"0000-12-31T09:59:59.9Z"', '"+10000-01-01T04:59:59.1Z"']),
        (within("t", "0001-01-01T00:00:00", "9999-12-31T00:00:00+00:00"), "t",
         ['"0001-01-01T00:00:00Z"', '"9999-12-31T00:00:00Z"'],
         ['"-0044-03-15T12:00:00Z"', '"+10000-01-01T00:00:00.5Z"', '"0000-12-31T23:59:59.9Z"']),
    ],
)  # fmt: skip
def test_an_event_that_breaks_a_limit_is_withheld(
    limit: ValueLimit, field: str, good: list[str], bad: list[str]
) -> None:
    table, plan = ruled(limit)
    for text in good:
        assert withheld(record(**{field: text}), table, plan) is None, text
    for text in bad:
        reason = withheld(record(op="r", **{field: text}), table, plan)
        assert str(reason).startswith(f"BROKEN_RULE: {limit.test}({field})"), text


def test_the_reason_names_rule_column_and_value() -> None:
    table, plan = ruled(one_of("s", "new"), not_null("i"))
    reason = withheld(record(s=json.dumps("x" * 200), i="null"), table, plan)
    said = "BROKEN_RULE: in(s) is broken by column 's' with the value "
    assert reason == f"{said}{'x' * refusals.MAX_VALUE_CHARACTERS}..."
    assert refusals.without_value(reason) == "BROKEN_RULE: in(s) is broken by column 's'"
    table, plan = ruled(not_null("i"))
    assert str(withheld(record(i="null"), table, plan)).endswith(" with the value NULL")


@pytest.mark.parametrize("value", ["NaN", '"NaN"', "Infinity"])
def test_a_number_that_is_none_exceeds_every_limit(value: str) -> None:
    """As Spark compares; Firehose refuses such a number before."""
    table, plan = ruled(within("d", "0", "10"))
    sent = [record(d=value), record(d="-Infinity")]
    agree(sent, table, plan)
    for row in slow_rows(sent, table, plan):
        assert row is not None and str(row[REFUSAL]).startswith("BROKEN_RULE: range(d)")
    table, plan = ruled(within("d", None, None), one_of("r", "0.25"))
    agree(sent, table, plan)


@pytest.mark.parametrize("identity", ["default", "full"])
def test_a_delete_is_never_withheld(identity: str) -> None:
    table, plan = ruled(not_null("s"), one_of("i", "7"), replica_identity=identity)
    sent = [record(op="d", s="null"), record(op="d"), record(op="t")]
    agree(sent, table, plan)
    assert [row and row[REFUSAL] for row in slow_rows(sent, table, plan)] == [None, None, None]
    for event in sent:
        assert isinstance(firehose_row(event, 0, table, plan), dict)


def test_a_value_that_was_not_sent_breaks_no_rule() -> None:
    table, plan = ruled(not_null("s"), one_of("s", "new"))
    sent = record(s=json.dumps(plan.placeholder))
    assert withheld(sent, table, plan) is None
    [row] = slow_rows([sent], table, plan)
    assert row is not None and row[naming.UNAVAILABLE] == ["s"]


def test_an_event_without_its_whole_row_is_refused_if_a_rule_may_withhold() -> None:
    """After a withheld update the earlier value is one that the row no longer has."""
    table, plan = ruled(one_of("i", "1"), replica_identity="full")
    reason = withheld(record(s=json.dumps(plan.placeholder)), table, plan)
    assert str(reason).startswith("UNSENT_VALUE: 's'")


def test_a_null_of_a_missing_field_breaks_not_null() -> None:
    """Firehose refuses such an event anyway, since it sees one at a time."""
    table, plan = ruled(not_null("s"))
    [row] = slow_rows([record(s=...)], table, plan)
    agree([record(s=...)], table, plan)
    assert row is not None and str(row[REFUSAL]).startswith("BROKEN_RULE")


def test_a_value_that_becomes_null_breaks_not_null() -> None:
    """With `not_representable: null` the state has NULL in its place."""
    table, plan = ruled(not_null("n"), within("day", "2020-01-01", None))
    strict = withheld(record(n='"1.005"'), table, plan)
    assert str(strict).startswith("NOT_REPRESENTABLE")
    lenient = replace(plan, not_representable="null")
    assert str(withheld(record(n='"1.005"'), table, lenient)).startswith("BROKEN_RULE: not_null")
    assert withheld(record(day="2147483647"), table, lenient) is None


def test_only_events_that_break_a_rule_are_decoded_slowly() -> None:
    table, plan = ruled(not_null("s"), one_of("i", "1", "2"), within("n", "0", None))
    sent = [record(), record(i="3"), record(op="d", s="null"), record(i="2"), record(s="null")]
    _, left = fast_rows(sent, table, plan)
    assert left == 2


UNSENT = json.dumps(naming.unavailable_placeholder("x"))
FIELDS = {
    "i": st.integers(-3, 3).map(str),
    "l": st.integers(-3, 3).map(str),
    "d": st.sampled_from(["-1.5", "0", "-0.0", "1e-9", "2.5", '"NaN"', "Infinity"]),
    "r": st.sampled_from(["0.1", "-0.0", "0.25", "3.4028235E38", '"NaN"']),
    "s": st.sampled_from(['"a"', '"b"', '""', '"é"', '"😀"', "null", UNSENT]),
    "b": st.sampled_from(["true", "false", "null"]),
    "n": st.sampled_from(['"-1"', '"0.00"', '"00.5"', '"1.005"', '"NaN"', "null"]),
    "t": st.sampled_from(['"2026-01-01T00:00:00Z"', '"-0001-01-01T00:00:00Z"', '"infinity"']),
    "day": st.sampled_from(["0", "-1", "20000", "2147483647", "null"]),
    "at": st.sampled_from(["0", "-1", "1000000", "9223372036854775807", "null"]),
}  # fmt: skip
LITERALS = {
    "i": ["-1", "0", "2"], "l": ["-1", "0", "2"], "d": ["-1.5", "0", "2.5"],
    "r": ["0.1", "0", "0.25"], "s": ["a", "b", "é"], "b": ["true", "false"],
    "n": ["-1", "0", "0.5"], "t": ["2026-01-01T00:00:00", "0001-01-01T00:00:00"],
    "day": ["1970-01-01", "2024-10-04"], "at": ["1970-01-01T00:00:00", "1970-01-01T00:00:01"],
}  # fmt: skip


@st.composite
def limits(draw: st.DrawFn) -> ValueLimit:
    column = draw(st.sampled_from(sorted(FIELDS)))
    literal = st.sampled_from(LITERALS[column])
    match draw(st.sampled_from(["not_null", "in", "range"])):
        case "in":
            return one_of(column, *draw(st.lists(literal, min_size=1, max_size=2)))
        case "range":
            return within(column, draw(literal), draw(st.none() | literal))
        case _:
            return not_null(column)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_random_rules_withhold_the_same_events_in_every_decoder(data: st.DataObject) -> None:
    table, plan = ruled(
        *data.draw(st.lists(limits(), min_size=1, max_size=3)),
        replica_identity=data.draw(st.sampled_from(["default", "full"])),
    )
    lenient = data.draw(st.booleans())
    plan = replace(plan, not_representable="null") if lenient else plan
    row = st.fixed_dictionaries({}, optional=FIELDS)
    sent = [
        record(op=data.draw(st.sampled_from("curd")), **fields)
        for fields in data.draw(st.lists(row, min_size=1, max_size=6))
    ]
    agree(sent, table, plan)
    for event, found in zip(sent, slow_rows(sent, table, plan), strict=True):
        by_firehose = firehose_row(event, 0, table, plan)
        if found is not None and by_firehose != refusals.NON_FINITE:
            assert (by_firehose if isinstance(by_firehose, str) else None) == found[REFUSAL]
