"""One list of a row's events, from what Kafka, the changelog and the quarantine have of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from cdclake.trace.trace_facts import TracedEvent

_LAST = "~"  # sorts after every position


def merged_events(
    stored: Iterable[TracedEvent],
    in_kafka: Iterable[TracedEvent],
    quarantined: Iterable[TracedEvent],
) -> tuple[TracedEvent, ...]:
    """Return each event once, in the order of positions.

    Records of one event that were sent again count as its copies. A refused event whose position is
    unknown, because Kafka no longer has its record, comes last.
    """
    events: dict[tuple[Any, ...], TracedEvent] = {}
    for event in (*stored, *in_kafka):
        known = events.get(event.identity)
        events[event.identity] = event if known is None else _joined(known, event)
    places = {_place(event): event.identity for event in events.values() if not event.is_stored}
    for event in quarantined:
        identity = places.get(_place(event), event.identity)
        events[identity] = _refused(events.get(identity), event)
    return tuple(sorted(events.values(), key=_order))


def _order(event: TracedEvent) -> tuple[str, int, int]:
    return event.position or _LAST, event.offset or 0, event.quarantined_us or 0


def _place(event: TracedEvent) -> tuple[Any, ...]:
    return event.topic, event.partition, event.offset


def _joined(known: TracedEvent, event: TracedEvent) -> TracedEvent:
    if _place(known) == _place(event) and known.kafka_ms is None:
        return replace(known, kafka_ms=event.kafka_ms)
    return replace(known, copies=known.copies + 1)


def _refused(known: TracedEvent | None, refused: TracedEvent) -> TracedEvent:
    if known is None:
        return refused
    return replace(known, reason=refused.reason, quarantined_us=refused.quarantined_us)
