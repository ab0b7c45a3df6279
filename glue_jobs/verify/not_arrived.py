"""Result of a wait of the comparison for one table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NotArrived:
    """Reason why the lake may lack changes of a table: a stop, a delay or a failed poll."""

    reason: str
    is_stopped: bool = False  # by the stream; the operator resumes it
