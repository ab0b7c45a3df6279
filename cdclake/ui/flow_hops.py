"""The flow from WAL to readers: state, rate, lag and freshness of each hop, from `status`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Status = Mapping[str, Any]


class Counters(NamedTuple):
    """Totals that grow with the flow; None where a component does not answer."""

    wal: int | None  # bytes
    kafka: int | None  # events
    changelog: int | None  # rows


def counters(status: Status) -> Counters:
    """Return the totals of all tables."""
    tables = status["tables"]
    return Counters(
        wal=(status.get("slot") or {}).get("wal_position"),
        kafka=_total(table.get("end_offset") for table in tables),
        changelog=_total(table["changes_rows"] for table in tables),
    )


def flow_hops(
    status: Status, now: Counters, before: Counters | None, seconds: float
) -> list[dict[str, Any]]:
    """Return the hops, from the WAL to the readers.

    A rate is per second since the answer before; a figure that is not known is None.
    """
    tables, slot = status["tables"], status.get("slot") or {}
    states = {part["name"]: part["state"] for part in status["components"]}
    rates = [
        _rate(new, None if before is None else old, seconds)
        for new, old in zip(now, before or now, strict=True)
    ]
    lag = status.get("lag_events", _total(table["lag_events"] for table in tables))
    freshness = status.get("freshness_s", _worst(table["freshness_s"] for table in tables))
    return [
        _hop("wal", "bytes", states.get("postgres"), rates[0], slot.get("wal_bytes")),
        _hop("connector", "events", states.get("connect"), rates[1], None),
        _hop("kafka", "events", states.get("kafka"), rates[1], lag),
        _hop("changelog", "rows", _writer(states), rates[2], None, freshness),
        _hop("state", "rows", _writer(states), None, None,
             _worst(table["state_age_s"] for table in tables)),
        _hop("readers", "rows", None, None, _total(t["incomplete"] for t in tables), freshness),
    ]  # fmt: skip


def _hop(
    name: str,
    unit: str,
    state: str | None,
    rate: float | None,
    lag: int | None,
    freshness_s: float | None = None,
) -> dict[str, Any]:
    return {"hop": name, "unit": unit, "state": state, "rate": rate, "lag": lag,
            "freshness_s": freshness_s}  # fmt: skip


def _writer(states: Mapping[str, str]) -> str | None:
    """Return the state of what writes changelogs; of two, the one that does not run."""
    found = [states[name] for name in ("stream", "firehose") if name in states]
    return next((state for state in found if state != "running"), found[0] if found else None)


def _rate(now: int | None, before: int | None, seconds: float) -> float | None:
    if now is None or before is None or seconds <= 0:
        return None
    return round(max(0, now - before) / seconds, 1)


def _total(figures: Iterable[int | None]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None


def _worst(figures: Iterable[float | None]) -> float | None:
    return max((figure for figure in figures if figure is not None), default=None)
