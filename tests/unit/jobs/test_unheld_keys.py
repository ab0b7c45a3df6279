"""Keys that the state's type cannot hold: all three decoders refuse them under both policies."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Literal

import pytest

from cdclake.debezium import refusals
from cdclake.debezium.refusal_details import RefusalDetails
from cdclake.jobs.stream.changelog_columns import REFUSAL
from cdclake.plan import Plan, Table
from tests.recorded.decoders import Kafka, fast_rows, firehose_row, slow_rows
from tests.unit.jobs.test_decoders_agree import agree, plan_of, record

Policy = Literal["quarantine", "null"]

# Type of the second key column, a value that it holds, and values that it does not hold.
KINDS = {
    "timestamptz": ('"2026-01-31T10:00:00Z"', ['"infinity"', '"-infinity"']),
    "date": ("20000", ["2147483647", "-2147472692"]),
    "timestamp": ("1700000000000000", ["9223372036825200000", "-9223372036832400000"]),
    "numeric(5,2)": ('"1.50"', ['"NAN"', '"POSITIVE_INFINITY"']),
}
UNHELD = [(kind, text) for kind, (_, unheld) in KINDS.items() for text in unheld]


def keyed(kind: str, policy: Policy, identity: str, deletes: str = "soft") -> tuple[Table, Plan]:
    table, plan = plan_of(("k", kind), ("v", kind), replica_identity=identity, deletes=deletes)
    table = replace(table, key=("id", "k"))
    return table, replace(plan, tables=(table,), not_representable=policy)


def event(op: str, k: str, v: str) -> Kafka:
    return record(key=f'{{"id":1,"k":{k}}}', op=op, k=k, v=v)


def refusal(sent: Kafka, table: Table, plan: Plan) -> str | None:
    """The reason of all decoders, alone and within a block."""
    usual = KINDS[table.columns[1].type][0]
    agree([sent], table, plan)
    agree([event("c", usual, usual), sent, event("d", usual, usual)], table, plan)
    [slow], ([fast], _) = slow_rows([sent], table, plan), fast_rows([sent], table, plan)
    assert slow is not None and fast is not None
    by_firehose = firehose_row(sent, 0, table, plan)
    told = by_firehose if isinstance(by_firehose, str) else None
    assert slow[REFUSAL] == fast[REFUSAL] == told
    return told


@pytest.mark.parametrize("identity", ["default", "full"])
@pytest.mark.parametrize("policy", ["quarantine", "null"])
@pytest.mark.parametrize(("kind", "text"), UNHELD)
def test_a_key_that_the_state_cannot_hold_is_refused(
    kind: str, text: str, policy: Policy, identity: str
) -> None:
    for deletes in ("soft", "hard"):
        table, plan = keyed(kind, policy, identity, deletes)
        expected = refusals.not_representable(table.columns[1], table)
        assert expected.endswith("cannot hold key column 'k'")
        for op in "crud":
            assert refusal(event(op, text, KINDS[kind][0]), table, plan) == expected, op


@pytest.mark.parametrize("identity", ["default", "full"])
@pytest.mark.parametrize("policy", ["quarantine", "null"])
@pytest.mark.parametrize(("kind", "text"), UNHELD)
def test_the_policy_decides_about_other_columns(
    kind: str, text: str, policy: Policy, identity: str
) -> None:
    table, plan = keyed(kind, policy, identity)
    refused = None
    if policy == "quarantine":
        refused = refusals.not_representable(table.columns[2], table)
    for op in "cru":
        assert refusal(event(op, KINDS[kind][0], text), table, plan) == refused, op
    of_delete = refused if identity == "full" else None
    assert refusal(event("d", KINDS[kind][0], text), table, plan) == of_delete


@pytest.mark.parametrize("op", ["c", "d"])
@pytest.mark.parametrize("policy", ["quarantine", "null"])
def test_the_details_name_the_key_column(op: str, policy: Policy) -> None:
    table, plan = keyed("timestamptz", policy, "default")
    key, value = event(op, '"infinity"', json.dumps(None))
    [detail] = RefusalDetails(table, plan).reasons(key, value)
    assert (detail.column, detail.value) == ("k", "infinity")
    assert detail.reason == "NOT_REPRESENTABLE: timestamp cannot hold key column 'k'"
