"""One list of a row's events, from what Kafka, the changelog and the quarantine have of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

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
    events: list[TracedEvent] = []
    for event in (*stored, *in_kafka):
        _add(events, event)
    for event in quarantined:
        _note_refused(events, event)
    return tuple(sorted(events, key=_order))


def _order(event: TracedEvent) -> tuple[str, int, int]:
    return event.position or _LAST, event.offset or 0, event.quarantined_us or 0


def _add(events: list[TracedEvent], event: TracedEvent) -> None:
    for index, known in enumerate(events):
        if known.identity != event.identity:
            continue
        is_its_record = (known.partition, known.offset) == (event.partition, event.offset)
        if is_its_record and known.kafka_ms is None:
            events[index] = replace(known, kafka_ms=event.kafka_ms)
        else:
            events[index] = replace(known, copies=known.copies + 1)
        return
    events.append(event)


def _note_refused(events: list[TracedEvent], refused: TracedEvent) -> None:
    place = (refused.topic, refused.partition, refused.offset)
    for index, known in enumerate(events):
        if not known.is_stored and (known.topic, known.partition, known.offset) == place:
            events[index] = replace(
                known, reason=refused.reason, quarantined_us=refused.quarantined_us
            )
            return
    events.append(refused)
