"""The runbooks: a page for each alarm and each occasional task, which the wheel contains."""

from __future__ import annotations

import re

from cdclake.places import RESOURCES

_FOLDER = RESOURCES / "runbooks"  # a link to docs/runbooks; a wheel has the pages themselves


def runbook_titles() -> dict[str, str]:
    """Return the first line of each runbook by name; README, their index, comes first."""
    return {name: runbook_text(name).partition("\n")[0].lstrip("# ") for name in _names()}


def runbook_text(name: str) -> str:
    """Return the page of an existing runbook, as Markdown."""
    return (_FOLDER / f"{name}.md").read_text("utf-8")


def alarm_runbook(alarm: str) -> str | None:
    """Return the name of the alarm's runbook; None for an alarm of the user's stacks.

    The deployment's prefix is not part of the alarm's name. Alarms that share a runbook are
    numbered.

    >>> alarm_runbook("lag"), alarm_runbook("declared-connector-2"), alarm_runbook("size")
    ('lag', 'declared-connector', None)
    """
    name = re.sub(r"-[0-9]+$", "", alarm)
    return name if name in _names() else None


def _names() -> list[str]:
    return sorted(page.stem for page in _FOLDER.glob("*.md"))
