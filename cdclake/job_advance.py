"""Progress of a job: a JSON object that it writes after each table, for the waiting command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cdclake.activity import Advance


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAdvance:
    """Tables that a job run has completed, of how many, and the rows and bytes of these."""

    done: int = 0
    total: int = 0
    rows: int = 0
    bytes: int = 0
    table: str = ""  # the one that was completed last

    def to_json(self) -> dict[str, Any]:
        """Return the content of the control object."""
        return asdict(self)

    @staticmethod
    def shown(content: Mapping[str, Any]) -> Advance:
        """Return the content as a display shows it."""
        advance = JobAdvance(**content)
        rows = f", {advance.rows:,} rows" if advance.rows else ""
        return Advance(
            done=advance.done,
            total=advance.total,
            unit="tables",
            size=advance.bytes or None,
            now=f"{advance.table} is done{rows}" if advance.table else "",
        )
