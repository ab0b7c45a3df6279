"""Named points where a process can be made to die, for tests of crashes in the commit windows.

`CDCLAKE_FAIL_POINT=NAME@N` in a process's environment kills it with SIGKILL when it reaches the
point NAME for the Nth time. Without the variable a point does nothing.
"""

from __future__ import annotations

import itertools
import os
import signal

FAIL_POINT_KEY = "CDCLAKE_FAIL_POINT"
FAIL_POINTS = (
    "before_changelog_commit",
    "after_changelog_commit",
    "before_state_commit",
    "after_state_commit",
    "after_quarantine_commit",
    "before_progress",
    "after_progress",
    "between_request_and_signal",
    "after_plan",
    "inside_maintenance",
    "before_derived_files",
    "after_derived_commit",
    "after_hudi_commit",
    "before_poll_progress",
    "between_request_and_register",
    "between_erasure_and_deletion",
)

_reached = itertools.count(1)


def reach(name: str) -> None:
    """Kill this process if its environment names this point and the number of this visit."""
    armed, _, visit = os.environ.get(FAIL_POINT_KEY, "").partition("@")
    if armed == name and next(_reached) == int(visit or 1):
        os.kill(os.getpid(), signal.SIGKILL)
