"""Report of `verify`: one object for the lake, with one entry per table."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from cdclake.jobs.verify.deep_comparison import DeepComparison
from cdclake.plan import Delivery, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Differing key with readable values; `source` or `lake` is None if it has no such row."""

    key: dict[str, str | None]
    kind: str  # missing, extra, different, unsettled, withheld or incomplete
    columns: list[str]  # lake names of the differing columns; all if a row is missing
    source: dict[str, str | None] | None
    lake: dict[str, str | None] | None


@dataclass(slots=True, kw_only=True)
class TableComparison:
    """Result of one table; the first ten fields are the contract's."""

    table: str
    source: str
    source_rows: int = 0
    lake_rows: int = 0
    missing: int = 0  # keys in the source only
    extra: int = 0  # keys in the lake only, or more often there
    different: int = 0
    unsettled: int = 0  # still changing in the last round: undecided
    omitted_columns: list[str] = field(default_factory=list)
    first: list[Example] = field(default_factory=list)
    state: str = "streaming"  # or stopped, by the stream
    error: str | None = None  # why the table has stopped, is late, or cannot be compared completely
    late: bool = False  # a wait ran out or a poll failed: the lake may lack changes
    compared_rows: int = 0  # of the source; fewer than `source_rows` in a sample
    seconds: float = 0.0
    quarantined: int = 0  # events in the quarantine, a cause of differences
    withheld: int = 0  # keys that differ only by events that a rule withholds: no difference
    incomplete: int = 0  # keys that lack values until they are applied: no difference
    delivery: Delivery = "stream"
    deep: DeepComparison | None = None  # with --deep

    @staticmethod
    def failed(table: Table, error: str) -> TableComparison:
        """Return the result of a table that cannot be compared."""
        return TableComparison(
            table=table.name, source=table.source, delivery=table.delivery, error=error
        )

    @property
    def ok(self) -> bool:
        """True if no difference and no error was found.

        Withheld rows are intended, and incomplete ones are documented for the engine.
        """
        return not self.differs and self.error is None

    @property
    def differs(self) -> bool:
        """True if a difference was found."""
        is_equal = not (self.missing or self.extra or self.different)
        return not is_equal or (self.deep is not None and not self.deep.ok)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Result of the whole comparison."""

    tables: list[TableComparison]
    reader: str = "duckdb"  # the engine whose `_current` was compared
    sample: int | None  # approximate number of compared rows per table; None: all
    rounds: int  # number of times that differing keys were read again
    seconds: float

    @property
    def ok(self) -> bool:
        """True if every table is; unsettled keys are not differences, but a stopped table is."""
        return all(table.ok for table in self.tables)

    def verdicts(self) -> dict[str, bool]:
        """Return by table whether it is equal, without tables for which that is not known.

        An equal sample does not show that a table is, and a late one may only lack late changes.
        """
        return {
            table.table: table.ok
            for table in self.tables
            if (table.differs and not table.late) or (table.ok and self.sample is None)
        }

    def to_json(self) -> dict[str, Any]:
        """Return the contract's object."""
        return {"ok": self.ok, **asdict(self)}
