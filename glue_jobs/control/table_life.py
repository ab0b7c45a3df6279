"""Life of a table in the stream, as a state machine: each variant says who sets it.

    Streaming -> Held       the stream, after an error that may pass
    Streaming -> Stopped    the stream: schema drift, too many refused events, a lasting error
    Held, Stopped -> Resuming   an operator's request, or a deployment's for changed columns
    Held, Resuming -> Streaming the stream, once it has read the records that the table missed

From every variant the stream may go to Held or Stopped. The stored form has the keys of the first
version; `parse_life` recognizes the variant by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Streaming:
    """The table takes part in each batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The table waits and is tried again by itself."""

    reason: str
    retry_at: float  # seconds since 1970
    skips_gap: bool = False  # asked for by the operator whose request has failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The table waits for an operator."""

    reason: str
    columns: tuple[str, ...] = ()  # why it stopped: they do not fit the events
    refused: bool = False  # it stopped because too many events were refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Resuming:
    """The table reads the records that it missed, in the next batch."""

    reason: str  # why it stopped
    columns: tuple[str, ...] = ()
    skips_gap: bool = False  # skip records that Kafka has deleted; a resync restores their rows


TableLife = Streaming | Held | Stopped | Resuming


def life_to_stored(life: TableLife, last_error: str | None) -> dict[str, Any]:
    """Return the stored keys; `last_error` is what `status` shows."""
    return {
        "state": "streaming" if isinstance(life, Streaming) else "stopped",
        "last_error": last_error,
        "resume_requested": isinstance(life, Resuming),
        "retry_at": life.retry_at if isinstance(life, Held) else 0.0,
        "gap_given_up": isinstance(life, Held | Resuming) and life.skips_gap,
        "columns": list(life.columns) if isinstance(life, Stopped | Resuming) else [],
        "refused": isinstance(life, Stopped) and life.refused,
    }


def parse_life(raw: Mapping[str, Any]) -> TableLife:
    """Return the variant that the stored keys describe; keys may be absent."""
    if raw.get("state", "streaming") == "streaming":
        return Streaming()
    reason, skips_gap = raw.get("last_error") or "", raw.get("gap_given_up", False)
    columns = tuple(raw.get("columns", ()))
    if raw.get("resume_requested"):
        return Resuming(reason=reason, columns=columns, skips_gap=skips_gap)
    if raw.get("retry_at"):
        return Held(reason=reason, retry_at=raw["retry_at"], skips_gap=skips_gap)
    # An earlier version stored no `refused`.
    refused = raw.get("refused", "events refused, more than stop_table_after=" in reason)
    return Stopped(reason=reason, columns=columns, refused=refused)
