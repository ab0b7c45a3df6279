"""A traced row as the object of `--json`, and as a timeline for a reader."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from cdclake import naming
from cdclake.trace.explanation import TraceFinding, explain
from cdclake.trace.trace_facts import Row, TracedEvent, TraceFacts

_MAX_VALUE_CHARACTERS = 60
_SWEEP = "sweep"  # operation of a truncate that cdclake has written for a new epoch
_COMMAND = re.compile(r"`(cdclake (?!runbook )[^`]+)`")  # of a lake


def trace_report(facts: TraceFacts, options: str = "") -> dict[str, Any]:
    """Return the object of `trace --json`; `options` are those that remedies need for this lake."""
    findings = [
        replace(
            found, remedy=_COMMAND.sub(lambda command: f"`{command[1]}{options}`", found.remedy)
        )
        for found in explain(facts)
    ]
    return {
        "ok": True,
        "table": facts.table.name,
        "source": facts.table.source,
        "key": list(facts.key),
        "situation": findings[0].code,
        "findings": [finding.to_json() for finding in findings],
        "earlier_events": facts.has_earlier,
        "events": list(_events(facts)),
        "hops": [hop for number, event in enumerate(_all(facts)) for hop in _hops(number, event)],
        "searched": [
            {"partition": place, "retained_from": low, "searched_from": first, "end": end}
            for place, (low, first, end) in sorted(facts.flow.searched.items())
        ],
        "readers": {
            **({} if facts.is_deployed else {"source": {"has_row": facts.source.has_row}}),
            naming.current_name(facts.table.name): facts.current_row,
            facts.table.name: facts.state_row,
        },
    }


def _all(facts: TraceFacts) -> list[TracedEvent]:
    """Return the row's events and the truncates between them, in order."""
    first = facts.events[0].position or "" if facts.events else None
    truncates = [t for t in facts.truncates if first is not None and (t.position or "") > first]
    return sorted((*facts.events, *truncates), key=lambda event: event.position or "~")


def _events(facts: TraceFacts) -> Iterator[dict[str, Any]]:
    """Yield each event with the row before and after it, as the changelog gives it."""
    row: Row | None = None
    for event in _all(facts):
        before, after = row, _after(row, event, facts)
        if event.is_stored:
            row = after
        operation = naming.OPERATIONS.get(event.op or "", "unknown")
        yield {
            "op": event.op,
            "operation": _SWEEP if event.is_sweep else operation,
            "position": event.position,
            "tx_id": event.tx_id,
            "topic": None if event.is_synthetic else event.topic,
            "partition": None if event.is_synthetic else event.partition,
            "offset": None if event.is_synthetic else event.offset,
            "before": before,
            "after": after,
            "unsent": list(event.unsent),
            "other_key": event.other_key,
            "copies": event.copies,
            "reason": event.reason,
        }


def _after(before: Row | None, event: TracedEvent, facts: TraceFacts) -> Row | None:
    if not event.is_stored:
        return None
    if event.op in ("d", "t"):
        return before if facts.table.deletes == "soft" and event.op == "d" else None
    values = dict(event.values or {})
    return {**values, **{name: (before or {}).get(name) for name in event.unsent}}


def _hops(number: int, event: TracedEvent) -> Iterator[dict[str, Any]]:
    """Yield the places that an event has reached, with the seconds since the hop before."""
    lsn = None if event.place is None else _lsn(event.place.lsn)
    about: tuple[tuple[str, int | None, dict[str, Any]], ...] = (
        ("source", event.committed_us, {"op": event.op, "tx_id": event.tx_id, "lsn": lsn,
                                        "position": event.position}),
        ("kafka", _micros(event.kafka_ms), {"topic": event.topic, "partition": event.partition,
                                            "offset": event.offset}),
        ("quarantine", event.quarantined_us, {"reason": event.reason}),
        ("changelog", event.ingested_us, {}),
        ("visible", _micros(event.shown_ms), {}),
        ("state", _micros(event.applied_ms), {}),
    )  # fmt: skip
    last: int | None = None
    for hop, micros, more in about:
        if micros is None:
            continue
        seconds = None if last is None else round((micros - last) / 1e6, 3)
        yield {"event": number, "hop": hop, "at": _time(micros), "seconds": seconds, **more}
        last = micros


def _micros(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else milliseconds * 1000


def _lsn(number: int) -> str:
    """Return an LSN as PostgreSQL writes it.

    >>> _lsn(0x16B374D848)
    '16/B374D848'
    """
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"


def _time(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat(timespec="milliseconds")


def timeline(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that describe a report to a reader."""
    yield f"{report['table']} {' '.join(report['key'])}: {report['situation']}"
    for finding in (TraceFinding(**found) for found in report["findings"]):
        yield f"  {finding.text}"
        if finding.remedy:
            yield f"    remedy: {finding.remedy}"
    if report["earlier_events"]:
        yield f"  the newest {len(report['events'])} events follow; earlier ones are not listed"
    for number, event in enumerate(report["events"]):
        yield ""
        yield f"{number + 1}. {_heading(event)}"
        hops = [hop for hop in report["hops"] if hop["event"] == number]
        yield from (_hop_line(hop, report) for hop in hops)
        if event["offset"] is not None and all(hop["hop"] != "kafka" for hop in hops):
            yield f"   {'time unknown':>29}  {_place(event)}"
        yield from _changed(event)
    yield ""
    yield "now"
    for name, answer in report["readers"].items():
        yield f"  {name:<20} {_answer(name, answer)}"


def _heading(event: Mapping[str, Any]) -> str:
    transaction = "" if event["tx_id"] is None else f", transaction {event['tx_id']}"
    copies = f", read {event['copies'] + 1} times" if event["copies"] else ""
    other = f", the other key is {event['other_key']}" if event["other_key"] else ""
    return f"{event['operation']}{transaction}{copies}{other}"


def _hop_line(hop: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    seconds, operation = hop["seconds"], report["events"][hop["event"]]["operation"]
    when = hop["at"] if seconds is None else f"{seconds:+.3f} s"
    names = {
        "source": f"a new epoch's snapshot of {report['source']} replaced what the lake had"
        if operation == _SWEEP
        else f"committed in {report['source']}, LSN {hop.get('lsn')}",
        "kafka": _kafka_place(hop),
        "quarantine": f"{naming.QUARANTINE}: {hop.get('reason')}",
        "changelog": f"{naming.changes_name(report['table'])}: read by the batch",
        "visible": f"{naming.changes_name(report['table'])}: committed, readers see it",
        "state": f"{report['table']}: applied",
    }
    return f"   {when:>29}  {names[hop['hop']]}"


def _place(event: Mapping[str, Any]) -> str:
    if event["partition"] is None:  # a redrive has quarantined it
        return f"Firehose: line {event['offset']} of {event['topic']}"
    return _kafka_place(event)


def _kafka_place(found: Mapping[str, Any]) -> str:
    return (
        f"Kafka: {found.get('topic')}, partition {found.get('partition')}, offset"
        f" {found.get('offset')}"
    )


def _changed(event: Mapping[str, Any]) -> Iterator[str]:
    before, after = event["before"] or {}, event["after"] or {}
    for name, value in after.items():
        if name not in before:
            yield f"     {name} = {_short(value)}"
        elif before[name] != value:
            yield f"     {name}: {_short(before[name])} -> {_short(value)}"
    if event["unsent"]:
        yield f"     not sent: {', '.join(event['unsent'])}"


def _answer(name: str, answer: Any) -> str:
    if name == "source":
        return {None: "does not answer", True: "has the row", False: "has no such row"}[
            answer["has_row"]
        ]
    return "no row" if answer is None else ", ".join(f"{k}={_short(v)}" for k, v in answer.items())


def _short(value: Any) -> str:
    text = "NULL" if value is None else value if isinstance(value, str) else json.dumps(value)
    cut = len(text) > _MAX_VALUE_CHARACTERS
    shown = " ".join(text[:_MAX_VALUE_CHARACTERS].split())
    return f"{shown}…" if cut else shown
