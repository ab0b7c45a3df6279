"""What `verify` says: one object for the lake, one entry for each table."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One key that differs; texts as people read them, `source` and `lake` None where no row is."""

    key: dict[str, str | None]
    kind: str  # missing, extra, different or unsettled
    columns: list[str]  # lake names of those that differ; all if a row is not there
    source: dict[str, str | None] | None
    lake: dict[str, str | None] | None


@dataclass(slots=True, kw_only=True)
class TableComparison:
    """One table's outcome; the first ten fields are the contract's."""

    table: str
    source: str
    source_rows: int = 0
    lake_rows: int = 0
    missing: int = 0  # keys in the source only
    extra: int = 0  # keys in the lake only, or more often there
    different: int = 0
    unsettled: int = 0  # still moving after the last round: neither right nor wrong
    omitted_columns: list[str] = field(default_factory=list)
    first: list[Example] = field(default_factory=list)
    state: str = "streaming"  # or stopped
    error: str | None = None  # why it has stopped, or cannot be compared whole
    compared_rows: int = 0  # of the source; fewer than `source_rows` in a sample
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the lake holds what the source does, as far as that can be said."""
        return not (self.missing or self.extra or self.different) and self.error is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The whole comparison."""

    tables: list[TableComparison]
    sample: int | None  # about so many rows of each table were compared; None: all
    rounds: int  # in which differing keys were read again
    seconds: float

    @property
    def ok(self) -> bool:
        """Keys that never stood still are no difference; a stopped table is one."""
        return all(table.ok for table in self.tables)

    def to_json(self) -> dict[str, Any]:
        """The contract's object."""
        return {"ok": self.ok, **asdict(self)}
