"""Quality rules of a table: what its rows, or the table, should satisfy in the lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

RuleKind = Literal["rows", "references", "freshness", "row_count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueLimit:
    """Values that one column of an event may have; limits are as the pipeline file spells them."""

    column: str  # lake name
    test: Literal["not_null", "in", "range"]
    allowed: tuple[str, ...] = ()
    low: str | None = None
    high: str | None = None

    @staticmethod
    def from_raw(raw: Mapping[str, Any]) -> ValueLimit:
        """Parse the limit of a rule in the plan's JSON."""
        return ValueLimit(**{**raw, "allowed": tuple(raw["allowed"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityRule:
    """One rule; which of the other fields it has depends on its kind.

    - rows: `violated` is the condition, in Spark's SQL, of a row of `<t>_current` that breaks it
    - references: the values of `column` must be in the key `key` of the table `table`, or NULL
    - freshness: the newest change was committed at most `most` seconds ago
    - row_count: the number of live rows is from `least` to `most`

    A rule of rows with a `limit` withholds the events that break it (`on: quarantine`).
    """

    name: str
    kind: RuleKind
    violated: str = ""
    column: str = ""
    table: str = ""
    key: str = ""
    least: float | None = None
    most: float | None = None
    limit: ValueLimit | None = None

    @staticmethod
    def from_raw(raw: Mapping[str, Any]) -> QualityRule:
        """Parse an entry of the plan's JSON."""
        limit = raw.get("limit")
        found = None if limit is None else ValueLimit.from_raw(limit)
        return QualityRule(**{**raw, "limit": found})


@dataclass(frozen=True, slots=True)
class FailedRule:
    """Rule that does not hold: how many rows break it, and the keys of some, as text."""

    rule: str
    rows: int = 0
    keys: Sequence[Mapping[str, str]] = ()

    def __str__(self) -> str:
        if not self.rows:
            return self.rule
        rows = "1 row" if self.rows == 1 else f"{self.rows} rows"
        keys = (", ".join(f"{name} = {value}" for name, value in key.items()) for key in self.keys)
        return f"{self.rule}: {rows}, such as {' and '.join(f'({key})' for key in keys)}"


def broke_rules_only(report: Mapping[str, Any]) -> bool:
    """Check whether a job's report has failed tables, and each of them by its rules alone."""
    failed = [line for line in report["tables"] if line["error"] is not None]
    return bool(failed) and all(line.get("failed_rules") for line in failed)
