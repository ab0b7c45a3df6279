"""Remedies name only commands that the CLI has and that the table's delivery allows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest

from cdclake.cli.verify_text import verify_lines
from cdclake.deployed.deployed_forecast import _effects
from cdclake.errors import InputError
from cdclake.local.health import assess_health
from cdclake.local.quarantined_events import quarantined_events
from cdclake.plan import Delivery, Plan, Table
from cdclake.polling import Polling
from cdclake.postgres.catalog import SourceTable
from cdclake.postgres.deployed_remedies import deployed_remedy
from cdclake.postgres.prepare import PublicationState
from cdclake.postgres.relation_record import RelationRecord
from cdclake.postgres.relations import RelationChange
from cdclake.trace.trace_report import trace_report
from tests.unit.cli.test_table_texts import report
from tests.unit.local.test_health import PART
from tests.unit.local.test_health import TABLE as STATUS
from tests.unit.local.test_quarantined_events import from_kafka, incomplete, quarantine, redriven
from tests.unit.postgres.tables import BY_NUMBER, column, declared
from tests.unit.postgres.test_relations import PARTS, ROOT, source
from tests.unit.postgres.test_relations import TABLE as RELATION
from tests.unit.trace.test_explanation import REFUSED, SITUATIONS
from tests.unit.trace.test_explanation import facts as facts_of
from tests.unit.typed_commands import unknown_words
from tests.unit.verify.lakes import make_plan

DELIVERIES = get_args(Delivery)
UNCONVERTED = "UNCONVERTED_VALUE: no value of NOT NULL n: Debezium cannot convert it"
ONLY_STREAM = ("replay", "resync")
LACKING = facts_of(replace(REFUSED, reason=UNCONVERTED))
TRACED = {**SITUATIONS, "quarantined_without_values": LACKING}
WIDER = replace(RELATION, file=11, columns=(RELATION.columns[0], column("number", "bigint")))
MOVED = replace(RELATION, indexes=(replace(BY_NUMBER, primary=True),))


def of_delivery(table: Table, delivery: Delivery) -> Table:
    polling = Polling(by="changed_at", every="rate(5 minutes)") if delivery == "poll" else None
    return replace(table, delivery=delivery, polling=polling)


def plan_of(table: Table) -> Plan:
    plan = make_plan(table)
    return replace(plan, tables=(), polled=(table,)) if table.delivery == "poll" else plan


def check(text: str, table: Table) -> None:
    """Raise unless every command of the text is accepted for the table."""
    plan = plan_of(table)
    for command in re.findall(r"`(cdclake [^`]+)`", text):
        words = shlex.split(command)
        assert unknown_words(words) == [], command
        named = [word for word in words[2:] if word in (table.name, table.source)]
        if words[1] in ONLY_STREAM:
            plan.streamed(named[0] if named else table.name)
        if "poll_tables" in words:
            assert table in plan.polled, command


def test_check_refuses_what_the_stream_does_not_write() -> None:
    for command in ("replay --table orders", "resync orders"):
        check(f"run `cdclake {command}`", declared())
        for delivery in ("firehose", "poll"):
            with pytest.raises(InputError, match="the stream does not write orders"):
                check(f"run `cdclake {command}`", of_delivery(declared(), delivery))


@pytest.mark.parametrize(
    ("code", "delivery"),
    [(c, d) for c in TRACED for d in DELIVERIES if d == "poll" or c != "not_polled"],
)
def test_trace_remedies_are_accepted(code: str, delivery: Delivery) -> None:
    facts = TRACED[code]
    table = of_delivery(facts.table, delivery)
    for is_deployed, options in ((False, ""), (True, " --target aws --file shop.yaml")):
        found = replace(facts, table=table, is_deployed=is_deployed)
        for finding in trace_report(found, options)["findings"]:
            check(f"{finding['text']} {finding['remedy']}", table)


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_remedies_of_status_and_verify_are_accepted(delivery: Delivery) -> None:
    table = of_delivery(declared(), delivery)
    figures = {"table": "orders", "delivery": delivery, "quarantined": 3}
    lines = assess_health({"components": [PART], "tables": [STATUS | figures]})["attention"]
    lines += verify_lines(report(figures), False)
    assert sum("3 events in" in line for line in lines) == 2
    deployed = [*verify_lines(report(figures), False, " --target aws --file shop.yaml")]
    commands = re.findall(r"`cdclake (?!runbook)[^`]+`", "\n".join(deployed))
    assert all("--target aws" in command for command in commands)
    check("\n".join((*lines, *deployed)), table)


def quarantine_remedies(delivery: Delivery) -> Iterator[str]:
    table = of_delivery(from_table(), delivery)
    record = redriven(1, incomplete(1)) if delivery == "firehose" else from_kafka("plain", 1)
    reasons = (
        record["reason"],
        "TOO_OLD: later events of the row may already be purged or collapsed",
        UNCONVERTED,
    )
    for reason in reasons:
        with quarantine([{**record, "reason": reason}], plan_of(table)) as found:
            [event] = quarantined_events(replace(found, options=" --target aws"), None, 1)["events"]
            yield event["remedy"]


def from_table() -> Table:
    return replace(declared(), name="plain", table="plain")


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_remedies_of_quarantined_events_are_accepted(delivery: Delivery) -> None:
    remedies = list(quarantine_remedies(delivery))
    for remedy in remedies:
        check(remedy, of_delivery(from_table(), delivery))
    assert ("cdclake redrive --target aws" in remedies[0]) == (delivery == "firehose")
    assert "update the row in the source" in remedies[1]
    assert "exclude the column" in remedies[2] and "replay" not in remedies[2]
    assert ("cdclake resync plain --target aws" in remedies[2]) == (delivery == "stream")
    assert "cdclake up" not in remedies[2]  # these are remedies of a deployment


def labelled(label: str) -> SourceTable:
    number = replace(RELATION.columns[1], labels={"7": label})
    return replace(RELATION, columns=(RELATION.columns[0], number))


def padded(length: int, *, file: int) -> SourceTable:
    columns = (RELATION.columns[0], column("number", f"char({length})", number=2))
    return replace(RELATION, file=file, columns=columns)


def relation_changes(table: Table) -> Iterator[RelationChange]:
    gone = PublicationState(True, False, True, {})
    for before, now, settled in (
        (RELATION, source(replace(RELATION, oid=2)), True),
        (RELATION, source(RELATION, publication=gone), True),
        (RELATION, source(names={1: ("old", "o")}), True),
        (RELATION, source(), True),
        (RELATION, source(MOVED), True),
        (RELATION, source(WIDER), True),
        (RELATION, source(replace(RELATION, file=11)), False),
        (labelled("sad"), source(labelled("blue")), True),
        (padded(5, file=10), source(padded(9, file=11)), True),
        (RELATION, source(replace(RELATION, row_security=True)), True),
        (ROOT, source(replace(ROOT, leaves=PARTS[:1])), True),
        (ROOT, source(replace(ROOT, leaves=(replace(PARTS[0], persistence="u"), PARTS[1]))), True),
    ):
        yield from now.compare(table, RelationRecord.of(table, before, settled=settled))


@pytest.mark.parametrize("delivery", ["stream", "firehose"])
def test_remedies_of_changed_relations_are_accepted(delivery: Delivery) -> None:
    table = of_delivery(declared(), delivery)
    changes = list(relation_changes(table))
    kinds = {"recreated", "unpublished", "renamed", "missing", "key", "rewritten", "detached"}
    kinds |= {"replaced", "relabelled", "converted", "unreadable", "unlogged"}
    assert {change.kind for change in changes} == kinds
    for change in changes:
        check(change.remedy, table)
        check(deployed_remedy(table, change), table)


def test_a_deployed_table_of_firehose_returns_with_topic_and_signal() -> None:
    table = of_delivery(declared(), "firehose")
    remedies = {each.kind: deployed_remedy(table, each) for each in relation_changes(table)}
    assert remedies.pop("unreadable").endswith("BYPASSRLS;")  # nothing is missing yet
    for kind, remedy in remedies.items():
        assert "import its topic and send the signal" in remedy, kind
        assert "`cdclake runbook resync`" in remedy, kind


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_forecast_of_a_deployment_names_accepted_commands(delivery: Delivery) -> None:
    table = of_delivery(declared(), delivery)
    before = make_plan(replace(declared(), name="others", table="others", topic="o"))
    polled = plan_of(table).polled
    after = replace(before, tables=(*before.tables, *plan_of(table).tables), polled=polled)
    answer: dict[str, Any] = _effects(before, after, "", "the deployed lake")
    [reason] = [each["reason"] for each in answer["tables"] if each["table"] == "orders"]
    check(reason, table)
    assert ("reads no rows of it by itself" in reason) == (delivery != "poll")
