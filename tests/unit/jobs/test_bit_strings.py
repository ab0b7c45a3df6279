"""Bit strings of one bit, which Debezium writes as booleans, in all three decoders."""

from __future__ import annotations

import pytest

from cdclake.debezium.types import same_in_the_lake, type_in_plan
from cdclake.jobs.stream.changelog_columns import REFUSAL
from tests.recorded.decoders import firehose_row, slow_rows
from tests.unit.jobs.test_decoders_agree import agree, plan_of, record


@pytest.mark.parametrize(
    ("kind", "field", "text"),
    [
        ("bit", "true", "true"),
        ("bit(1)", "false", "false"),
        ("varbit(1)", "true", "true"),
        ("varbit(1)", "false", "false"),
        ("varbit(1)", "null", None),
        ("bit varying(1)", "true", "true"),
        ("varbit", '"Aw=="', "Aw=="),
        ("varbit(40)", '""', ""),
    ],
)
@pytest.mark.parametrize("op", ["c", "r", "u", "d"])
def test_bit_strings_have_one_text_in_every_decoder(
    kind: str, field: str, text: str | None, op: str
) -> None:
    table, plan = plan_of(("v", kind), replica_identity="full")
    key, value = record(op=op, v=field)
    usual = record(v=field)[1]
    assert value is not None and usual is not None
    before = usual.split(b'"after":')[1].split(b',"source"')[0].decode()
    sent = (key, value.replace(b'"before":null', f'"before":{before}'.encode()))
    assert agree([sent], table, plan) == 0, "the fast decoder proves it"
    [row] = slow_rows([sent], table, plan)
    assert row is not None
    assert (row[REFUSAL], row["v"]) == (None, text)
    by_firehose = firehose_row(sent, 0, table, plan)
    assert isinstance(by_firehose, dict)
    assert by_firehose["v"] == text


@pytest.mark.parametrize("kind", ["bit(8)", "varbit(8)"])
def test_a_bit_string_is_declared_with_its_kind(kind: str) -> None:
    """The length of a bit(n) is known, that of a varbit is lost in its events."""
    found = {
        declared: same_in_the_lake(type_in_plan(declared), type_in_plan(kind))
        for declared in ("bit(8)", "varbit(8)")
    }
    assert found == {declared: declared == kind for declared in found}
