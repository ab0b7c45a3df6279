"""New tables of the source, written into the pipeline file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cdclake.config.added_tables import add_tables
from cdclake.jobs.runtime.source import source_tables
from cdclake.local.lake.introspect import introspect_undeclared
from cdclake.plan import Plan
from cdclake.postgres.file_lines import scalar
from cdclake.postgres.pipeline_text import entry_lines
from cdclake.postgres.proposal import Proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTables:
    """Tables of the source that the pipeline file does not declare."""

    matching: tuple[Proposal, ...] = ()  # those of `policies: new_tables`
    others: tuple[str, ...] = ()

    @property
    def admitted(self) -> tuple[Proposal, ...]:
        """Return the proposals that can be added as they are."""
        return tuple(proposal for proposal in self.matching if not proposal.reason)


def find_new_tables(dsn: str, plan: Plan, patterns: Sequence[str]) -> NewTables:
    """Return the source's undeclared tables, with proposals for those that match a pattern.

    While a declared table is missing from the source, each proposal is refused: the new table may
    be that one under another name, and its columns would flow without the declared masks.
    """
    undeclared, proposals = introspect_undeclared(dsn, plan, patterns)
    matching = {proposal.source.source for proposal in proposals}
    present = source_tables(dsn, plan)
    missing = [t.source for t in plan.tables if (t.schema, t.table) not in present]
    if missing:
        proposals = [_refused(proposal, missing[0]) for proposal in proposals]
    others = tuple(t.source for t in undeclared if t.source not in matching)
    return NewTables(matching=tuple(proposals), others=others)


def _refused(proposal: Proposal, missing: str) -> Proposal:
    return replace(
        proposal,
        reason=f"it is new, and the declared table {missing} is missing in the source",
        remedy=f"if it is {missing} under another name, declare it with the same masks and excluded"
        f" columns; otherwise remove {scalar(missing)} from the file, and run the command again",
    )


def declare_new_tables(dsn: str, plan: Plan, patterns: Sequence[str], file: Path) -> NewTables:
    """Write the source's tables that match a pattern into the file of this plan.

    Raises:
        InputError: if the source does not answer or the file cannot be changed; it is unchanged
    """
    found = find_new_tables(dsn, plan, patterns)
    if found.admitted:
        add_tables(file, {p.source.source: entry_lines(p) for p in found.admitted})
    return found
