"""Watch over a command that starts processes: report its changes, and undo them if it fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cdclake.local.lake import stack
from cdclake.local.process.home import Home
from cdclake.local.process.process_changes import Processes


@contextmanager
def watched(home: Home) -> Iterator[list[str]]:
    """Fill the yielded list with the changes of processes; stop what a failed block has started.

    A process that the lake had before and that was dead stays healed: the other tables need it.
    """
    before = Processes.of(home)
    did: list[str] = []
    try:
        yield did
    except BaseException:
        _undo(home, before)
        raise
    did += before.changes(Processes.of(home))


def _undo(home: Home, before: Processes) -> None:
    after = Processes.of(home)
    if after.names and not before.names:
        stack.shut_down(home)
        return
    for name in reversed(after.names):
        if name not in before.names:
            stack.stop_component(home, name)
