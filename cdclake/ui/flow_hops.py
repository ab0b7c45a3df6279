"""The flow from WAL to readers: state, rate, lag and freshness of each hop, from `status`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cdclake.topic_totals import total_of_topics

Status = Mapping[str, Any]


class Counters(NamedTuple):
    """Totals that grow with the flow; None where a component does not answer."""

    wal: int | None  # bytes
    connector: int | None  # events in Kafka
    kafka: int | None  # events that the stream has read
    changelog: int | None  # rows
    state: int | None  # rows of the changelog that are applied


def counters(status: Status) -> Counters:
    """Return the totals of all tables."""
    tables = status["tables"]
    sent = total_of_topics(tables, "end_offset")
    rows = _total(table["changes_rows"] for table in tables)
    return Counters(
        wal=(status.get("slot") or {}).get("wal_position"),
        connector=sent,
        kafka=_less(sent, total_of_topics(tables, "lag_events")),
        changelog=rows,
        state=_less(rows, _total(table["unapplied_rows"] for table in tables)),
    )


def flow_hops(
    status: Status, now: Counters, before: Counters | None, seconds: float
) -> list[dict[str, Any]]:
    """Return the hops, from the WAL to the readers.

    A rate is per second since the answer before. The lag is what waits there, and the freshness
    how long the newest change took from its commit in the source to there. Readers see what is in
    the changelog. A figure that is not known is None.
    """
    tables, slot = status["tables"], status.get("slot") or {}
    beat = status.get("heartbeat") or {}
    states = {part["name"]: part["state"] for part in status["components"]}
    wal, connector, kafka, changelog, state = (
        _rate(new, None if before is None else old, seconds)
        for new, old in zip(now, before or now, strict=True)
    )
    unread = status.get("lag_events", total_of_topics(tables, "lag_events"))
    unapplied = _total(table["unapplied_rows"] for table in tables)
    fresh = status.get("freshness_s", _worst(table["freshness_s"] for table in tables))
    ages = [age for table in tables if (age := table["state_age_s"]) is not None]
    writer, behind = _writer(states), sum(age > 0 for age in ages) if ages else None
    return [
        _hop("wal", "bytes", states.get("postgres"), wal, slot.get("wal_bytes"), None),
        _hop("connector", "events", states.get("connect"), connector,
             slot.get("unconfirmed_bytes"), beat.get("connector_s")),
        _hop("kafka", "events", states.get("kafka"), kafka, unread, beat.get("kafka_s")),
        _hop("changelog", "rows", writer, changelog, unapplied, fresh),
        _hop("state", "rows", writer, state, behind, _state_freshness(fresh, _worst(ages))),
        _hop("readers", "rows", None, changelog, _total(t["incomplete"] for t in tables), fresh),
    ]  # fmt: skip


def _hop(
    name: str,
    unit: str,
    state: str | None,
    rate: float | None,
    lag: int | None,
    freshness_s: float | None,
) -> dict[str, Any]:
    return {"hop": name, "unit": unit, "state": state, "rate": rate, "lag": lag,
            "freshness_s": freshness_s}  # fmt: skip


def _writer(states: Mapping[str, str]) -> str | None:
    """Return the state of the changelogs' writer; of two writers, the one that does not run."""
    found = [states[name] for name in ("stream", "firehose") if name in states]
    return next((state for state in found if state != "running"), found[0] if found else None)


def _state_freshness(changelog_s: float | None, behind_s: float | None) -> float | None:
    """Return the freshness of a state that has been behind its changelog for these seconds."""
    if changelog_s is None or behind_s is None:
        return None
    return round(changelog_s + behind_s, 3)


def _rate(now: int | None, before: int | None, seconds: float) -> float | None:
    if now is None or before is None or seconds <= 0:
        return None
    return round(max(0, now - before) / seconds, 1)


def _total(figures: Iterable[int | None]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None


def _less(whole: int | None, part: int | None) -> int | None:
    return None if whole is None or part is None else whole - part


def _worst(figures: Iterable[float | None]) -> float | None:
    return max((figure for figure in figures if figure is not None), default=None)
