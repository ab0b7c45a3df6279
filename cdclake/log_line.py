"""One line of a component's log, local or deployed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, order=True)
class LogLine:
    """Line of a log with the component that wrote it; lines sort by time."""

    at: datetime
    component: str
    text: str
