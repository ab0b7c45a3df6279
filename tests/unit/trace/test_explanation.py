"""The explanation of a row from recorded facts; `tests/local/test_trace.py` records real ones."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from cdclake.cli.target import deployment_options
from cdclake.debezium.position import Position
from cdclake.plan import Column, Table
from cdclake.polling import Polling
from cdclake.trace.explanation import explain
from cdclake.trace.merged_events import merged_events
from cdclake.trace.trace_facts import FlowFacts, SourceFacts, StateFacts, TracedEvent, TraceFacts
from cdclake.trace.trace_report import timeline, trace_report

TABLE = Table(
    schema="public",
    table="orders",
    name="orders",
    topic="shop.public.orders",
    key=("id",),
    columns=(
        Column(source="id", name="id", type="bigint"),
        Column(source="note", name="note", type="text"),
    ),
)
POLLED = replace(TABLE, delivery="poll", polling=Polling(by="changed_at", every="rate(5 minutes)"))
MASKED = replace(
    TABLE, columns=(*TABLE.columns, Column(source="mail", name="mail", type="text", mask="hash"))
)


def event(
    op: str, number: int, *, phase: int = 1, is_stored: bool = True, **more: object
) -> TracedEvent:
    """The event number `number` of a table: all its places and times follow from it."""
    facts: dict[str, object] = {
        "op": op,
        "position": str(Position(1, number, phase, number, number)),
        "tx_id": number,
        "committed_us": number * 1_000_000,
        "topic": TABLE.topic,
        "partition": 0,
        "offset": number,
        "kafka_ms": number * 1000 + 100,
        "ingested_us": number * 1_000_000 + 500_000 if is_stored else None,
        "values": {"id": 1, "note": f"n{number}"},
    }
    return TracedEvent(**{**facts, **more})  # type: ignore[arg-type]


def facts(*events: TracedEvent, **more: object) -> TraceFacts:
    """Facts of a row that the source has, and of a state with every event."""
    given: dict[str, object] = {
        "table": TABLE,
        "key": ("1",),
        "source": SourceFacts(has_row=True, is_published=True),
        "flow": FlowFacts(arrived={0: 100}),
        "events": events,
        "applied_through_us": 10**15,
        "current_row": {"id": 1, "note": "n"},
    }
    return TraceFacts(**{**given, **more})  # type: ignore[arg-type]


GONE = SourceFacts(has_row=False, is_published=True)
WAITING = event("u", 200, is_stored=False)
REFUSED = event(
    "u", 5, is_stored=False, reason="NO_ROW: `after` is missing", quarantined_us=6_000_000
)
WITHHELD = replace(REFUSED, reason="BROKEN_RULE: in(s) is broken by column 's' with the value x")
DELETE = event("d", 9)
TRUNCATE = event("t", 50)
SWEEP = event("t", 50, tx_id=None, partition=-1, offset=0, kafka_ms=None)

SITUATIONS: dict[str, TraceFacts] = {
    "applied": facts(event("c", 1), event("u", 2)),
    "loaded": facts(event("r", 1, phase=0)),
    "resynced": facts(event("c", 1), event("r", 2, phase=0)),
    "polled": facts(event("r", 1, phase=2)),
    "not_applied": facts(
        event("c", 1),
        event("u", 2),
        applied_through_us=1_600_000,
        state=StateFacts(position=event("c", 1).position or "", deleted=False),
    ),
    "not_read": facts(event("c", 1), WAITING),
    "paused": facts(WAITING, flow=FlowFacts(arrived={0: 100}, is_paused=True)),
    "table_stopped": facts(
        WAITING, flow=FlowFacts(arrived={0: 100}, is_stopped=True, last_error="too many")
    ),
    "quarantined": facts(REFUSED),
    "withheld": facts(WITHHELD),
    "deleted": facts(event("c", 1), DELETE, source=GONE, current_row=None),
    "deleted_soft": facts(
        event("c", 1), DELETE, source=GONE, current_row=None, table=replace(TABLE, deletes="soft")
    ),
    "key_changed_to": facts(
        event("c", 1), replace(DELETE, other_key="2"), source=GONE, current_row=None
    ),
    "key_changed_from": facts(event("c", 1, other_key="7")),
    "truncated": facts(event("c", 1), truncates=(TRUNCATE,), source=GONE, current_row=None),
    "swept": facts(event("c", 1), truncates=(SWEEP,), source=GONE, current_row=None),
    "reinserted": facts(event("c", 1), DELETE, event("c", 10)),
    "late_event": facts(event("c", 1, ingested_us=9_000_000), event("u", 2)),
    "unsent_value": facts(event("c", 1), event("u", 2, unsent=("note",))),
    "value_missing": facts(
        event("u", 2), state=StateFacts(position="~", deleted=False, missing=("note",))
    ),
    "masked": facts(event("c", 1), table=MASKED),
    "resync_running": facts(flow=FlowFacts(is_resyncing=True)),
    "before_load": facts(flow=FlowFacts(is_loading=True)),
    "loading": facts(event("r", 1, phase=0), flow=FlowFacts(is_loading=True)),
    "not_published": facts(source=SourceFacts(has_row=True, is_published=False)),
    "filtered": facts(source=SourceFacts(has_row=True, is_published=True, row_filter="(id < 1)")),
    "not_polled": facts(flow=FlowFacts(polled=True), table=POLLED),
    "not_in_kafka": facts(),
    "erased": facts(source=GONE, erased_at="00000002"),
    "no_such_row": facts(source=GONE),
    "source_unknown": facts(source=SourceFacts()),
    "differs": facts(event("c", 1), source=GONE),
}
# Findings that add to another answer.
FURTHER = {
    *("loaded", "resynced", "polled", "key_changed_from", "reinserted", "late_event"),
    *("unsent_value", "value_missing", "masked", "loading", "differs"),
}


def test_a_printed_trace_command_can_be_typed() -> None:
    moved = facts(event("c", 1), replace(DELETE, other_key="New York"), source=GONE)
    options = deployment_options(Path("my \\1 files/s.yaml"), "prod")
    [remedy] = [found["remedy"] for found in trace_report(moved, options)["findings"][:1]]
    assert shlex.split(remedy.split("`")[1]) == [
        *("cdclake", "trace", "orders", "New York", "--target", "aws"),
        *("--file", "my \\1 files/s.yaml", "--environment", "prod"),
    ]


@pytest.mark.parametrize("code", SITUATIONS)
def test_explain_names_the_situation(code: str) -> None:
    codes = [finding.code for finding in explain(SITUATIONS[code])]
    assert codes[0] == ("applied" if code in FURTHER else code)
    assert code in codes
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize(
    ("flow", "words"),
    [
        (FlowFacts(polled=True), "by 'changed_at'"),
        (FlowFacts(polled=False), "no poll has read the table yet"),
        (FlowFacts(polled=True, last_error="no access"), "failed: no access"),
    ],
)
def test_a_row_that_no_poll_has_found_is_explained(flow: FlowFacts, words: str) -> None:
    [finding] = explain(facts(flow=flow, table=POLLED))
    assert finding.code == "not_polled" and words in finding.text


def test_a_delete_by_a_sweep_is_no_row_that_a_poll_has_found() -> None:
    swept = facts(event("r", 1, phase=2), event("d", 2, phase=2), source=GONE, current_row=None)
    codes = [finding.code for finding in explain(swept)]
    assert "deleted" in codes and "polled" not in codes


@pytest.mark.parametrize("removed", [SWEEP, TRUNCATE], ids=["swept", "truncated"])
def test_a_row_that_was_deleted_before_is_neither_swept_nor_truncated(removed: TracedEvent) -> None:
    for other_key, code in ((None, "deleted"), ("2", "key_changed_to")):
        deleted = replace(event("d", 2), other_key=other_key)
        of_row = facts(event("c", 1), deleted, truncates=(removed,), source=GONE, current_row=None)
        codes = {finding.code for finding in explain(of_row)}
        assert code in codes and not codes & {"swept", "truncated"}


def test_a_refused_event_before_the_newest_is_no_answer() -> None:
    codes = [finding.code for finding in explain(facts(event("c", 1), REFUSED, event("u", 7)))]
    assert codes[:2] == ["applied", "quarantined"]


def test_an_applied_row_is_not_reported_as_different() -> None:
    codes = [finding.code for finding in explain(SITUATIONS["applied"])]
    assert codes == ["applied"]


def test_merged_events_joins_the_places_of_one_event() -> None:
    stored = replace(event("c", 1), kafka_ms=None)
    again = event("c", 1, is_stored=False, offset=8, position=str(Position(1, 1, 1, 1, 8)))
    refused = TracedEvent(topic=TABLE.topic, partition=0, offset=5, reason="R", quarantined_us=7)
    [first, second] = merged_events(
        [stored], [event("c", 1, is_stored=False), again, event("u", 5, is_stored=False)], [refused]
    )
    assert (first.kafka_ms, first.copies, first.is_stored) == (1100, 1, True)
    assert (second.op, second.reason, second.is_stored) == ("u", "R", False)


def test_report_has_each_hop_with_its_seconds() -> None:
    report = trace_report(
        facts(event("c", 1, shown_ms=2000, applied_ms=2500), event("u", 2, unsent=("note",)))
    )
    first = [(hop["hop"], hop["seconds"]) for hop in report["hops"] if hop["event"] == 0]
    assert first == [
        ("source", None), ("kafka", 0.1), ("changelog", 0.4), ("visible", 0.5), ("state", 0.5),
    ]  # fmt: skip
    assert report["events"][1]["after"] == {"id": 1, "note": "n1"}  # the value before
    lines = list(timeline(report))
    assert lines[0] == "orders 1: applied"
    assert any("Kafka: shop.public.orders, partition 0, offset 1" in line for line in lines)
    assert "     not sent: note" in lines


def test_timeline_shows_the_line_of_a_redriven_record() -> None:
    where = "s3://lake/firehose/redriven/processing-failed/x"
    refused = TracedEvent(topic=where, offset=3, reason="NON_FINITE", quarantined_us=7_000_000)
    lines = list(timeline(trace_report(facts(refused, table=replace(TABLE, delivery="firehose")))))
    assert any(line.endswith(f"Firehose: line 3 of {where}") for line in lines)
    assert not any("None" in line or "Kafka" in line for line in lines)


def test_report_has_no_place_of_an_event_that_cdclake_wrote() -> None:
    loaded = event("r", 1, phase=0, partition=-2, kafka_ms=None)
    report = trace_report(facts(loaded, truncates=(SWEEP,), source=GONE, current_row=None))
    assert [event["operation"] for event in report["events"]] == ["snapshot", "sweep"]
    for event_of_report in report["events"]:
        assert all(event_of_report[name] is None for name in ("topic", "partition", "offset"))
    lines = list(timeline(report))
    assert "2. sweep" in lines and not any("Kafka" in line or "TRUNCATE" in line for line in lines)
    assert sum("committed in public.orders" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("flow", "source", "code"),
    [
        (FlowFacts(connector_error="no slot"), SourceFacts(has_row=True), "not_in_kafka"),
        (FlowFacts(kafka_answers=False), SourceFacts(has_row=True), "kafka_unknown"),
        (FlowFacts(), SourceFacts(has_row=True, is_published=False), "not_published"),
        (FlowFacts(polled=True, last_error="no access"), SourceFacts(has_row=True), "not_polled"),
    ],
)
def test_an_applied_row_whose_changes_no_longer_arrive_is_explained(
    flow: FlowFacts, source: SourceFacts, code: str
) -> None:
    codes = [finding.code for finding in explain(facts(event("c", 1), flow=flow, source=source))]
    assert codes == ["applied", code]


def test_a_row_is_not_missing_in_a_kafka_that_does_not_answer() -> None:
    [finding] = explain(facts(flow=FlowFacts(kafka_answers=False)))
    assert finding.code == "kafka_unknown"


def test_an_event_that_the_lake_has_passed_is_explained() -> None:
    passed = event("c", 1, is_stored=False)
    firehose = replace(TABLE, delivery="firehose")
    assert explain(facts(passed))[0].code == "not_stored"
    [first, *_] = explain(facts(event("c", 1), event("u", 2, is_stored=False), table=firehose))
    assert first.code == "not_stored" and "cdclake redrive" in first.remedy
    assert explain(facts(passed, source=GONE, erased_at="~"))[0].code == "erased"
    # The stream drops records of rows that it has.
    codes = [f.code for f in explain(facts(event("c", 1), event("u", 2, is_stored=False)))]
    assert "not_stored" not in codes


def test_the_earlier_key_is_named_after_a_further_change() -> None:
    found = explain(facts(event("c", 1, other_key="7"), event("u", 2)))
    assert "key_changed_from" in [finding.code for finding in found]
