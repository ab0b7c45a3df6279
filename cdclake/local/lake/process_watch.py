"""Watch over a command that starts processes: report its changes, and undo them if it fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from cdclake.errors import CdcError
from cdclake.local.components import connect
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LakeState
from cdclake.local.lake.source import check_owner_in, drop_unread_slot
from cdclake.local.lake.source_owner import owner_of
from cdclake.local.lake.source_tls import secured
from cdclake.local.process.home import Home
from cdclake.local.process.process_changes import Processes
from cdclake.plan import Plan


@contextmanager
def undo_on_error(home: Home) -> Iterator[list[str]]:
    """Collect process changes into the yielded list; stop what a failed block has started.

    A process that the lake had before and that was dead stays healed: the other tables need it.
    """
    before, epoch = Processes.of(home), LakeState.load(home).epoch
    did: list[str] = []
    try:
        yield did
    except BaseException as error:
        _report(error, _undo(home, before, epoch))
        raise
    did += before.changes(Processes.of(home))


def _undo(home: Home, before: Processes, epoch: int) -> str:
    """Stop what the command has started, and return what it leaves in the source, if anything.

    `epoch` is that of the lake before the command.
    """
    after = Processes.of(home)
    if after.names and not before.names:
        stack.shut_down(home)
    else:
        for name in reversed(after.names):
            if name not in before.names:
                stack.stop_component(home, name)
    return _unread_slot(home, epoch)


def _unread_slot(home: Home, epoch: int) -> str:
    """Drop the slot of an epoch that the command began; return what the user must know of another.

    A slot that an earlier command made may have changes that the lake still lacks.
    """
    state = LakeState.load(home)
    if not state.plan or not state.in_source or stack.wants(home, connect.NAME):
        return ""
    plan, why = Plan.from_json(state.plan), ""
    if state.epoch > epoch:
        try:
            dsn = secured(home.secret("source_dsn"))
            check_owner_in(dsn, plan, owner_of(home, state))
            drop_unread_slot(dsn, plan)
            return ""
        except (CdcError, psycopg.Error) as error:
            why = f", and could not be dropped ({' '.join(str(error).split())})"
    slot = plan.source_object
    return f"the slot {slot} retains WAL{why}; run `cdclake up` or `cdclake down`"


def _report(error: BaseException, left: str) -> None:
    """Add to the error what its command leaves; an interruption has no message to add it to."""
    if left and isinstance(error, CdcError):
        error.remedy = f"{error.remedy}; {left}" if error.remedy else left
    elif left:
        sys.stderr.write(f"{left}\n")
