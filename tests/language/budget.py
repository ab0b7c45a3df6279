"""Ratchet for the groups that are still to be rewritten: `python -m tests.language.budget`.

`budget.json` holds the current counts of these groups. A count may not rise, and when it falls the
budget has to be lowered with it. A group that is absent has the final limits; once the file is
gone, every group has them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.language.measures import (
    MAX_OPENINGS_PERCENT,
    MAX_PHRASES_PER_1000_WORDS,
    Measures,
)
from tests.language.tree import measure_groups

BUDGET = Path(__file__).with_name("budget.json")
COUNTED = ("opening", "phrase", "shown")
RENEW = "run `python -m tests.language.budget`"
REPORT = "see `python -m tests.language.report PATH...`"

Counts = dict[str, int]
Budget = Mapping[str, Counts]


def read_budget(path: Path = BUDGET) -> dict[str, Counts]:
    """Return the budget of each unfinished group; none when the file is gone."""
    if not path.exists():
        return {}
    budget: dict[str, Counts] = json.loads(path.read_text())
    return budget


def violations(groups: Mapping[str, Measures], budget: Budget) -> list[str]:
    """Return what breaks the final limits or differs from the budget, one line per reason."""
    found = [f"{group}: has a budget but no files; {RENEW}" for group in budget.keys() - groups]
    for group, measures in groups.items():
        if group in budget:
            found += _against_budget(group, measures, budget[group])
        elif not measures.are_final:
            found.append(
                f"{group}: {measures}; at most {MAX_OPENINGS_PERCENT} % of docstrings,"
                f" {MAX_PHRASES_PER_1000_WORDS} per 1,000 words and no shown string; {REPORT}"
            )
    return sorted(found)


def _against_budget(group: str, measures: Measures, allowed: Counts) -> list[str]:
    if measures.are_final:
        return [f"{group}: meets the final limits; {RENEW} to remove it from the budget"]
    found = []
    for name, count in counts_of(measures).items():
        if count > allowed[name]:
            found.append(f"{group}: {name} rose from {allowed[name]} to {count}; {REPORT}")
        elif count < allowed[name]:
            found.append(f"{group}: {name} fell from {allowed[name]} to {count}; {RENEW}")
    return found


def counts_of(measures: Measures) -> Counts:
    """Return the counts that the budget holds."""
    return {name: getattr(measures, name) for name in COUNTED}


def new_budget(groups: Mapping[str, Measures]) -> dict[str, Counts]:
    """Return the budget of the tree as it is: the counts of each group beyond the final limits."""
    return {group: counts_of(found) for group, found in groups.items() if not found.are_final}


def rises(old: Budget, new: Budget) -> list[str]:
    """Return the totals that a new budget would raise; files may move from group to group."""
    totals = [(name, _sum(old, name), _sum(new, name)) for name in COUNTED]
    return [f"{name} would rise from {was} to {now}" for name, was, now in totals if now > was]


def _sum(budget: Budget, name: str) -> int:
    return sum(counts[name] for counts in budget.values())


def render(budget: Budget) -> str:
    """Return the file's text, one line per group, so that branches merge."""
    rows = [f"  {json.dumps(group)}: {json.dumps(budget[group])}" for group in sorted(budget)]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def main(path: Path, groups: Mapping[str, Measures]) -> str:
    """Lower the budget to the current counts, or delete it when all limits hold."""
    new = new_budget(groups)
    if higher := rises(read_budget(path), new):
        sys.exit("; ".join(higher) + f"; {REPORT}")
    if not new:
        path.unlink(missing_ok=True)
        return "every group meets the final limits"
    path.write_text(render(new))
    return f"{len(new)} groups to be rewritten, in {path.name}"


if __name__ == "__main__":
    sys.stdout.write(main(BUDGET, measure_groups()) + "\n")
